"""One widget as a page of its own: state, code and style in a single file that opens without Jupyter or a network.

For slides and web sites (`Widget.save_html`), and the place where the browser tests meet the widgets.
"""

import json
from base64 import b64encode
from html import escape

from widgets.base import Widget, join

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
for (const [name, text] of Object.entries({binary})) {{
  state[name] = new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}}
window.model = await mount(widget, state, document.getElementById("widget"));
</script>
</body>
</html>
"""


def html(widget: Widget) -> str:
    """The page as text; the same for the same widget in the same state."""
    state = {name: value for name, value in widget.get_state().items() if not name.startswith("_")}
    state = {name: value for name, value in state.items() if name not in ("layout", "tabbable", "tooltip")}
    binary = {
        name: b64encode(value).decode() for name, value in state.items() if isinstance(value, (bytes, memoryview))
    }
    return PAGE.format(
        title=escape(repr(widget)),
        css=widget._css,
        host=join("host.js").replace("export ", ""),
        esm=widget._esm.replace("export default", "const widget ="),
        state=_script({name: value for name, value in state.items() if name not in binary}),
        binary=_script(binary),
    )


def _script(value) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
