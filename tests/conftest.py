"""What several test folders share: a real Chromium, and the rule for machines without one."""

import os
import shutil

import pytest

FLAGS = [
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium: the machine's own, or the one that Playwright has fetched.

    Without one the test is skipped with a line that says what to install; with CI=true it fails, since a green run
    that has looked at nothing would be a lie.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        path = path or playwright.chromium.executable_path
        if not os.path.exists(path):
            complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            complain("no Chromium: install your system's chromium package, or run `playwright install chromium`")
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()
