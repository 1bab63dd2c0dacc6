"""What every widget of the house stands on: one module of JavaScript joined from several, a stable repr, a fallback.

anywidget loads `_esm` as one module from a blob, where relative imports do not work, and Node is not on a student's
machine: so `join` puts our ES modules into one text. Each file stays a module of its own that a browser test imports
unchanged. What is saved in a notebook beside the live widget is readable without a kernel: `__repr__` and the
`text/html` of `fallback`. It is the same on every run (nbval compares it) unless the widget is `measured`.

`html` makes a page of its own of one widget: state, code and style in a single file that opens without Jupyter or a
network. It is for slides and web sites (`Widget.save_html`), and the place where the browser tests meet the widgets.

Left out: anything a single widget does.
"""

import json
import re
from base64 import b64encode
from functools import cache
from html import escape
from pathlib import Path

import anywidget

HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import \{ [\w, ]+ \} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)
_SPACE = re.compile(r"([:,}])\s| (?={)")  # that says nothing in our CSS
_BREAK = re.compile(r"(?<=[;{,(\[])\n(?!export)|\n(?=[)\]}])")  # a line's end that says nothing
# A comment block or line, a type within a line, a remark after code. No text in our modules looks like one.
_COMMENT = re.compile(
    r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$|/\*\*(?:(?!\*/).)*\*/ ?|^[ \t]*//[^\n]*$|(?<=[;,{}()\[\]]) // [^\n]*$",
    re.DOTALL | re.MULTILINE,
)

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 12px; }}
h1 {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171a; }} }}
{css}</style>
</head>
<body>
<main><h1>{title}</h1><div id="widget"></div></main>
<script type="module">
{host}
{esm}
const state = {state};
window.model = await mount(widget, revived({{ state, binary: {binary} }}), document.getElementById("widget"));
lendKeys();
</script>
</body>
</html>
"""


@cache
def _source(path: Path) -> str:
    return lean(path.read_text())


@cache
def join(entry: str, without: str = "") -> str:
    """The module `widgets/js/<entry>` with everything it imports, as one module, without comments and indentation. The
    module `without`, and what only that one imports, is left out: nothing may call it.

    A dependency becomes `const { exports } = (() => { ...; return { exports }; })();`: what it does not export stays
    private. Only `import { a, b } from "./x.js";` and `export function | class | const | let` are understood, and no
    two modules may export one name (a test holds to all of it).
    """
    joined: dict[str, str] = {}

    def add(name: str) -> str:
        source = _source(HERE / "js" / name)
        for needed in _IMPORT.findall(source):
            if needed not in joined and needed != without:
                body = add(needed)
                exports = f"{{{','.join(_EXPORT.findall(body))}}}"
                joined[needed] = f"const {exports} = (() => {{\n{_EXPORT.sub('', body)}\nreturn {exports};\n}})();\n"
        return _IMPORT.sub("", source)

    body = add(entry)
    if "export default" in body:  # a widget; its own names may be those of exports that it does not import
        body = f"export default (() => {{\n{body.replace('export default', 'return')}\n}})();\n"
    return _BREAK.sub("", "".join(joined.values()) + body)


@cache
def styles(*names: str) -> str:
    """The colours all widgets share, and the widget's own `widgets/css/<name>`."""
    return "".join((HERE / "css" / name).read_text() for name in ("theme.css", *names))


_CLASSES: dict[type, type] = {}


class Widget(anywidget.AnyWidget):
    """Base of all widgets. A subclass sets `_esm = join(...)` and `_css = styles(...)` and says what it is."""

    def __init__(self, **traits):
        unknown = sorted(name for name in traits if not self.has_trait(name))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]!r}; look at help({type(self).__name__})")
        super().__init__(**traits)

    def add_traits(self, **traits):
        """anywidget adds its traits to every instance, which makes a class each time and takes a millisecond or two.
        They are the same for all instances of a class, so here they share one."""
        if (made := _CLASSES.get(plain := type(self))) is None:
            names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__}
            made = _CLASSES[plain] = type(plain.__name__, (plain,), names | traits)
        self.__class__ = made
        for name in traits:
            getattr(made, name).instance_init(self)
        self.keys.extend(traits)  # type: ignore[has-type]

    measured = False  # whether `fallback` has what was measured, so that no two runs have the same

    def summary(self) -> str:
        """What stands between the brackets of the repr; the same on every run."""
        return ""

    def fallback(self) -> str:
        """HTML that is shown where the widget cannot live: an untrusted clone, a code host, a PDF. The same on every
        run unless `measured`."""
        return f"<span>{escape(repr(self))}</span>"

    def save_html(self, path) -> None:
        """Writes one page with this widget as it stands: interactive, without Jupyter, without a network."""
        Path(path).write_text(html(self), encoding="utf-8")

    def code(self) -> tuple[str, str]:
        """JavaScript and style of a page of its own."""
        return self._esm, self._css

    def __repr__(self):
        return f"{type(self).__name__}({self.summary()})"

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        measured = {"measured": True} if self.measured else {}  # for course.refresh
        return {"text/plain": repr(self), "text/html": self.fallback(), **data}, metadata | measured


def page_state(widget: Widget) -> dict:
    """What a page without a kernel has to know of it: {"state": its traits, "binary": those of bytes, in base64}."""
    state = {name: value for name, value in widget.get_state().items() if not name.startswith("_")}
    state = {name: value for name, value in state.items() if name not in ("layout", "tabbable", "tooltip", "fresh")}
    binary = {
        name: b64encode(value).decode() for name, value in state.items() if isinstance(value, (bytes, memoryview))
    }
    return {"state": {name: value for name, value in state.items() if name not in binary}, "binary": binary}


def html(widget: Widget) -> str:
    """The page as text; the same for the same widget in the same state."""
    esm, css = widget.code()
    return PAGE.format(
        title=escape(repr(widget)),
        css=_SPACE.sub(r"\1", _BREAK.sub("", lean(css))).replace(";}", "}"),
        host=join("host.js").replace("export ", ""),
        esm=esm.replace("export default", "const widget ="),
        **{name: as_script(kept) for name, kept in page_state(widget).items()},
    )


def lean(code: str) -> str:
    """JavaScript or CSS without comments and indentation, which are more than a third of it."""
    return re.sub(r"\n\s+", "\n", _COMMENT.sub("", code))


def as_script(value) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
