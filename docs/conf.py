"""How the documentation is built: ``python -m sphinx -W -b html docs docs/_build/html``, with cgrad installed and its extra `docs`."""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import gallery  # noqa: E402
import reference  # noqa: E402

import cgrad  # noqa: E402

project, author, copyright = "cgrad", "cgrad contributors", "cgrad contributors"
release = version = cgrad.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser",
              "sphinx_copybutton", "sphinx_gallery.gen_gallery", "picture", "search"]
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. ", True
exclude_patterns = ["_build"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Docstrings: `name` is a link where cgrad has such a name, else a parameter or a file; what is spelled with a dot has to be there.
# Tables of members are written by reference.py.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"\w+(\.py)?"), ("py:class", r"cgrad\.core\.dtype\.DType")]       # the latter is cgrad.dtype by its own name
autosummary_generate = False
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries = False

html_theme = "pydata_sphinx_theme"
html_title = "cgrad"
html_static_path = ["_static"]
html_css_files, html_js_files = ["cgrad.css"], ["cgrad.js"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "navbar_align": "left", "header_links_before_dropdown": 8,
                      "navbar_end": ["theme-switcher"],
                      "secondary_sidebar_items": {"**": ["page-toc"], "performance": [], "background/data-parallel": []},      # wide tables
                      "footer_start": ["copyright"],
                      "footer_end": [], "pygments_light_style": "a11y-high-contrast-light", "pygments_dark_style": "a11y-high-contrast-dark"}
html_sidebars = {"index": [], "changelog": []}

if (HERE.parent / ".asv/site/asv/index.html").exists():         # pages of `asv publish`, linked from the page on performance
    html_extra_path = ["../.asv/site"]
    tags.add("asv")  # noqa: F821  Sphinx's

reference.write(HERE / "reference")

os.environ["TQDM_DISABLE"] = "1"        # no progress bars in what the examples print
# A name of a function instead of the function lets Sphinx keep its cache.
sphinx_gallery_conf = {"examples_dirs": "../examples", "gallery_dirs": "examples", "filename_pattern": gallery.pattern(),
                       "within_subsection_order": "gallery.order", "reset_argv": "gallery.arguments", "abort_on_example_error": True,
                       "download_all_examples": False, "notebook_extensions": set(), "show_signature": False, "write_computation_times": False,
                       "image_srcset": ["2x"], "default_thumb_file": str(HERE / "drawings/thumbnail.svg")}


def page_context(app, pagename, templatename, context, doctree):
    """The language of a page; and what screen readers stumble over: roles that ARIA has given up, heads of columns without a word."""
    if pagename.startswith("zh/"):
        context["language"] = "zh"
    body = context.get("body", "")
    for old, new in ((' role="list" class="citation-list"', ' class="citation-list"'), (' role="doc-biblioentry"', ""),
                     ('<th class="head"><p></p></th>', "<td></td>")):
        body = body.replace(old, new)
    context["body"] = body


def setup(app):
    app.connect("html-page-context", page_context)
