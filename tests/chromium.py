"""How the tests, the pictures and the benchmarks start a browser: the machine's own Chromium, or Playwright's.

Its letters are set as `fonts.conf` beside this file says, in DejaVu: with another font, or other smoothing, every line
would break elsewhere and no picture would be like the approved one.
"""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

FLAGS = [
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

FONTS = Path(__file__).parent / "fonts.conf"


class NoChromium(Exception):
    """There is none; the message says what to install."""


@contextmanager
def launched(*flags: str):
    """A headless Chromium; `flags` besides ours."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        path = path or playwright.chromium.executable_path
        if not os.path.exists(path):
            raise NoChromium(
                "no Chromium: install your system's chromium package, or run `playwright install chromium`"
            )
        env = os.environ | {"FONTCONFIG_FILE": str(FONTS)}
        chromium = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags], env=env)
        yield chromium
        chromium.close()
