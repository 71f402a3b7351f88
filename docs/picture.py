"""The directive ``picture``: what an expression shows in a notebook, computed with the code that stands above it on the page; or a drawing of
the folder drawings.  Pictures are put into the page itself, so that they take its colours."""
import doctest
import html
import re
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

DRAWINGS = Path(__file__).resolve().parent / "drawings"
NUMBER = count()                       # the names inside each picture are its own


class Picture(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self):
        what, page = self.arguments[0], Path(self.env.doc2path(self.env.docname))
        if what.endswith(".svg"):
            self.env.note_dependency(str(DRAWINGS / what))
            return [self.drawn((DRAWINGS / what).read_text())]
        shown = eval(what, namespace("".join(page.read_text().splitlines(keepends=True)[:self.lineno - 1])))
        if hasattr(shown, "_repr_html_"):
            return [figure(shown._repr_html_())]
        svg = shown._repr_svg_()
        return [self.drawn(svg) if svg else nodes.literal_block(text=str(shown), language="none")]      # without Graphviz as text

    def drawn(self, svg):
        """An SVG without the head of its file, under names of its own."""
        svg = re.sub(r"<!--.*?-->|<title>.*?</title>\n?", "", svg[svg.index("<svg"):], flags=re.DOTALL)
        wide = float(re.search(r'width="([\d.]+)', svg)[1]) > 480
        svg = re.sub(r'(\bid="|url\(#)', rf"\g<1>p{next(NUMBER)}-", svg)
        return figure(svg, f' role="img" aria-label="{html.escape(self.options["alt"])}"', " wide" * wide)


def figure(content, attributes="", kind=""):
    return nodes.raw("", f'<figure class="picture{kind} pst-scrollable-table-container"{attributes}>{content}</figure>', format="html")


def namespace(text):
    """The names that a page has defined so far."""
    names = {"__name__": "__main__"}
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    with redirect_stdout(StringIO()):
        for example in doctest.DocTestParser().get_examples(code):
            if not example.exc_msg:
                exec(compile(example.source, "page", "exec"), names)
    return names


def setup(app):
    app.add_directive("picture", Picture)
    return {"version": "1", "parallel_read_safe": False}
