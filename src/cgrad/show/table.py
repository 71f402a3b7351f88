"""Tables of figures, as aligned text and as HTML."""
from __future__ import annotations

import html

__all__ = ["html_table", "text_table"]


def text_table(rows):
    """Rows of strings, the first of which is the head: the first column to the left, figures to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) if k else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)


def html_table(rows):
    """The same for a notebook."""
    def line(row, tag):
        return "<tr>" + "".join(f'<{tag} style="text-align:{"right" if k else "left"}">{html.escape(cell)}</{tag}>' for k, cell in enumerate(row)) + "</tr>"

    return f"<table>{line(rows[0], 'th')}{''.join(line(row, 'td') for row in rows[1:])}</table>"
