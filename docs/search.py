"""The search of the site.  Words are English ones, and Chinese by its characters and pairs of neighbours, since it puts no spaces between words.
Below each result stands the text around what was found: it comes from a file of its own, since browsers let no page that is read from a disk
fetch another one."""
import json
import re
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish

WORDS = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")          # runs of Chinese, and of other letters, digits and underscores
TEXTS = "page-texts.js"


class Search(SearchEnglish):
    # A query is split alike, but of several characters only the pairs are asked for.
    js_splitter_code = r"""
var splitQuery = query => (query.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{Letter}\p{Number}_])+/gu) || []).flatMap(word =>
  /^[\u3400-\u9fff]{2}/.test(word) ? Array.from({length: word.length - 1}, (_, i) => word.slice(i, i + 2)) : [word]);
"""

    def split(self, input):
        found = []
        for word in WORDS.findall(input):
            chinese = "\u3400" <= word[0] <= "\u9fff"
            found += [*word, *map("".join, pairwise(word))] if chinese else [word]
        return found


def write_texts(app):
    """All pages as plain text, and the two functions of Sphinx's search that ask for them."""
    texts = {}
    for name in app.env.found_docs:
        page = app.env.get_doctree(name)
        for node in [page.next_node(nodes.title), *page.findall(nodes.raw), *page.findall(nodes.comment)]:
            node.parent.remove(node)
        texts[app.builder.get_target_uri(name)] = " ".join(page.astext().split())
    code = f"""const pageTexts = {json.dumps(texts, ensure_ascii=False)};
window.fetch = url => Promise.resolve({{text: () => pageTexts[url.replace(document.documentElement.dataset.content_root, "")]}});
Search.htmlToText = text => text;
"""
    (Path(app.outdir) / "_static" / TEXTS).write_text(code, encoding="utf-8")
    return []


def load_texts(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(TEXTS, loading_method="defer")


def setup(app):
    app.add_search_language(Search)
    app.connect("html-collect-pages", write_texts)
    app.connect("html-page-context", load_texts)
    return {"version": "1", "parallel_read_safe": True}
