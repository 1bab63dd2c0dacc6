"""One page with every approved picture: `python -m tests.pictures.gallery`, or `make gallery`, which say where it is.

Beside a picture that the last test run found different stands what it drew.
"""

from html import escape
from pathlib import Path

from tests.pictures.camera import APPROVED, DRAWN, HERE, SCHEMES
from tests.pictures.scenes import SCENES

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ringside: every widget</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
figure {{ display: inline-block; margin: 0 12px 20px 0; max-width: 46%; vertical-align: top; }}
img {{ max-width: 100%; border: 1px solid #8888; }}
.drawn img {{ border: 3px solid #d55e00; }}
</style>
<h1>Every widget</h1>
{scenes}
</html>
"""


def write(path: Path) -> None:
    path.write_text(PAGE.format(scenes="\n".join(map(_scene, SCENES))), encoding="utf-8")


def _scene(name: str) -> str:
    figures = [
        _figure(folder, f"{name}-{size}-{scheme}", words)
        for size in SCENES[name].sizes
        for scheme in SCHEMES
        for folder, words in ((APPROVED, f"{size}, {scheme}"), (DRAWN, f"{size}, {scheme}: drawn by the last test run"))
    ]
    return f"<h2>{escape(name)}</h2>\n{''.join(figures)}"


def _figure(folder: Path, name: str, words: str) -> str:
    path = folder / f"{name}.webp"
    if not path.exists():
        return ""
    return (
        f'<figure class="{folder.name}"><a href="{path.as_uri()}"><img alt="{name}" src="{path.as_uri()}">'
        f"</a><figcaption>{escape(words)}</figcaption></figure>"
    )


if __name__ == "__main__":
    write(HERE / "gallery.html")
    print((HERE / "gallery.html").as_uri())
