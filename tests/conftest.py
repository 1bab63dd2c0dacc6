"""What several test folders share: a real Chromium, and the rule for machines without one."""

import os

import pytest

from tests.chromium import NoChromium, launched


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium.

    Without one the test is skipped with a line that says what to install; with CI=true it fails, since a green run
    that has looked at nothing would be a lie.
    """
    try:
        with launched() as chromium:
            yield chromium
    except NoChromium as missing:
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain(str(missing))
