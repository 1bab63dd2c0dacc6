"""A plugin of pytest's that is loaded before all others (pyproject.toml) and spares them what they do for nobody. It
also skips the chapters where their outputs cannot be compared.

Three seconds of every start went there, and a tenth of the time of tests that compute. And a kernel of nbval's that
dies before it has begun is started once more.
Left out: what others do for somebody.
"""

import gc
import os
import sys
import tempfile
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # nbval would have it compile a grammar of addresses
LOCK = Path(__file__).parents[1] / "etc" / "lock.txt"
# What a chapter's kernel keeps: progress (else it would run what its author has solved) and what it leaves in /tmp
_SCRATCH = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
gc.disable()  # until all is imported and collected


def not_as_locked(lock: str) -> list[str]:
    """What is installed with another version than the lock says: "torch 2.8.0 (2.13.0)"."""
    differ = []
    for line in lock.splitlines():
        name, _, version = line.partition("==")
        if version and not line.startswith("#"):
            try:
                here = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue  # nothing of it can show in an output
            if here.partition("+")[0] != version:
                differ.append(f"{name} {here} ({version})")
    return differ


def pytest_collection_modifyitems(items):
    chapters = [item for item in items if item.path.suffix == ".ipynb"]
    if chapters and (differ := not_as_locked(LOCK.read_text())):
        why = f"saved outputs are compared only under etc/lock.txt, and here {', '.join(differ[:3])} differ"
        if os.environ.get("CI") == "true":  # a green run that has compared nothing would be a lie
            raise pytest.UsageError(why)
        for item in chapters:
            item.add_marker(pytest.mark.skip(reason=why))


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
    from tests.drawn import keep  # what pytest loads as a plugin must not be imported before

    how |= {"env": os.environ | {"JUPYTER_DATA_DIR": _SCRATCH.name, "TMPDIR": _SCRATCH.name}}
    try:
        manager, client = start(**how)
    except RuntimeError:
        manager, client = start(**how)
    keep(client)
    return manager, client


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if "hypothesis" not in sys.modules:  # it would be imported to say that it has nothing to say
        session.config.pluginmanager.unregister(name="hypothesispytest")
