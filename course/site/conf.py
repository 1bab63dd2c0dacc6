"""Sphinx's settings for the site. What it reads has been put into its source folder by course/site/__main__.py."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from pygments.lexers.special import TextLexer

project = "Ringside"
html_title = "Ringside"
copyright = "the Ringside team"
extensions = ["myst_nb"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["widgets.css", "site.css"]
html_js_files = ["site.js"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page from the file system may not fetch another
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "course.site.anchor"  # as JupyterLab makes them
nb_execution_mode = "off"
nb_ipywidgets_js: dict = {}  # they would come from another host
nb_merge_streams = True
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "misc.highlighting_failure"]


def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise SkipNode


def _block(self, node):
    self.body.append(convert(node.astext(), display="block"))
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))  # MathJax would come from another host
    app.add_lexer("mermaid", TextLexer)  # a code host draws it; Sphinx before 8.2 warns that it cannot colour it
