"""A plugin of pytest's that is loaded before all others (pyproject.toml) and spares them what they do for nobody.

Three seconds of every start went there, and a tenth of the time of tests that compute. And a kernel of nbval's that
dies before it has begun is started once more.
Left out: what others do for somebody.
"""

import gc
import os
import sys
import tempfile
from functools import partial

import pytest

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # nbval would have it compile a grammar of addresses
_NOTHING_SOLVED = tempfile.TemporaryDirectory()  # else the chapters would run what their author has solved
gc.disable()  # until all is imported and collected


def pytest_collection_finish():
    """What is there now stays: else torch's half a million objects are searched again and again, pytest does so five
    times at its end. And a schedule of ten thousand messages is no reason to search."""
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()


def pytest_configure():
    import nbval.kernel

    nbval.kernel.pformat = lambda message: message  # of every message of a kernel, for a log that is off
    nbval.kernel.start_new_kernel = partial(started, nbval.kernel.start_new_kernel)


def started(start, **how):
    """A kernel's ports are picked before it takes them, and another process may come first: of 126 starts, four at a
    time, one died of it. JupyterLab then starts it again, with other ports; so do we, once.
    In it nothing is solved yet."""
    how |= {"env": os.environ | {"JUPYTER_DATA_DIR": _NOTHING_SOLVED.name}}
    try:
        return start(**how)
    except RuntimeError:
        return start(**how)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if "hypothesis" not in sys.modules:  # it would be imported to say that it has nothing to say
        session.config.pluginmanager.unregister(name="hypothesispytest")
