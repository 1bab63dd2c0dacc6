"""What every widget of the house stands on: one module of JavaScript joined from several, a stable repr, a fallback.

anywidget loads `_esm` as one module from a blob, where relative imports do not work, and Node is not on a student's
machine: so `join` puts our ES modules into one text. Each file stays a module of its own that a browser test imports
unchanged. What is saved in a notebook beside the live widget must be the same on every run (nbval compares it) and
readable without a kernel: `__repr__` and the `text/html` of `fallback` are that.

Left out: anything a single widget does.
"""

import re
from functools import cache
from html import escape
from pathlib import Path

import anywidget
import minify_html

HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_BLANK = re.compile(r">\n\s+(?=[<$])")  # between the lines of a template, which the minifier has to keep
_DECLARED = re.compile(r"^  /\*\* @type .*\*/ \w+;\n", re.MULTILINE)  # a field of a class that only tells its type
_COMMENT = re.compile(r"/\*\*.*?\*/", re.DOTALL)  # the minifier drops only the others


@cache
def join(entry: str) -> str:
    """The module `widgets/js/<entry>` with everything it imports, as one module, without comments and blanks.

    A dependency becomes `const { exports } = (() => { ...; return { exports }; })();`: what it does not export stays
    private. Only `import { a, b } from "./x.js";` and `export function | class | const | let` are understood, and no
    two modules may export one name (a test holds to all of it).
    """
    joined: dict[str, str] = {}

    def add(name: str) -> str:
        source = _BLANK.sub(">", _COMMENT.sub("", _DECLARED.sub("", (HERE / "js" / name).read_text())))
        for needed in _IMPORT.findall(source):
            if needed not in joined:
                body = add(needed)
                exports = f"{{ {', '.join(_EXPORT.findall(body))} }}"
                body = body.replace("export ", "")
                joined[needed] = f"const {exports} = (() => {{\n{body}\nreturn {exports};\n}})();\n"
        return _IMPORT.sub("", source)

    body = add(entry)
    if "export default" in body:  # a widget; its own names may be those of exports that it does not import
        body = f"export default (() => {{\n{body.replace('export default', 'return')}\n}})();\n"
    return _squeeze("".join(joined.values()) + body)


def _squeeze(module: str) -> str:
    """The same module without comments and blanks; names stay, so that an error in the browser can be read."""
    before, after = "<script type=module>", "</script>"
    page = minify_html.minify(f"{before}{module}{after}", minify_js=True)
    return page.removeprefix(before).removesuffix(after).replace("/* @__PURE__ */ ", "")  # a note to bundlers


@cache
def styles(*names: str) -> str:
    """The colours all widgets share, and the widget's own `widgets/css/<name>`."""
    return "".join((HERE / "css" / name).read_text() for name in ("theme.css", *names))


class Widget(anywidget.AnyWidget):
    """Base of all widgets. A subclass sets `_esm = join(...)` and `_css = styles(...)` and says what it is."""

    def __init__(self, **traits):
        unknown = sorted(name for name in traits if not self.has_trait(name))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]!r}; look at help({type(self).__name__})")
        super().__init__(**traits)

    def summary(self) -> str:
        """What stands between the brackets of the repr; the same on every run."""
        return ""

    def fallback(self) -> str:
        """HTML that is shown where the widget cannot live: an untrusted clone, a code host, a PDF. Deterministic."""
        return f"<span>{escape(repr(self))}</span>"

    def save_html(self, path) -> None:
        """Writes one page with this widget as it stands: interactive, without Jupyter, without a network."""
        from widgets import page

        Path(path).write_text(page.html(self), encoding="utf-8")

    def __repr__(self):
        return f"{type(self).__name__}({self.summary()})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {"text/plain": repr(self), "text/html": self.fallback(), **data}, metadata
