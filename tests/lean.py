"""A plugin of pytest's that is loaded before all others (pyproject.toml) and spares them what they do for nobody.

Three seconds of every start went there. Left out: what they do for somebody.
"""

import sys

import pytest

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # nbval would have it compile a grammar of addresses


def pytest_configure():
    import nbval.kernel

    nbval.kernel.pformat = lambda message: message  # of every message of a kernel, for a log that is off


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if "hypothesis" not in sys.modules:  # it would be imported to say that it has nothing to say
        session.config.pluginmanager.unregister(name="hypothesispytest")
