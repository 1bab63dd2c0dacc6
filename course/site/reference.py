"""The reference: what students type, with its signature and its docstring as `help` shows it.

Left out: what is not listed in a package's `__all__`.
"""

import importlib
import inspect
from collections.abc import Iterator

PACKAGES = ("collectives", "launch", "widgets", "course")


def pages() -> Iterator[tuple[str, str]]:
    """The name and the Markdown of each package's page."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        parts = [f"# {name}", _text(package)]
        for each in package.__all__:
            parts += _entry(each, getattr(package, each))
        yield name, "\n\n".join(parts) + "\n"


def _entry(name: str, what) -> list[str]:
    parts = [f"## {name}", *_signature(name, what), _text(what)]
    for method, function in vars(what).items() if inspect.isclass(what) else ():
        if inspect.isfunction(function) and not method.startswith("_") and function.__doc__:
            parts += [f"### {name}.{method}", *_signature(method, function), _text(function)]
    return parts


def _signature(name: str, what) -> list[str]:
    if not callable(what):
        return []
    try:
        return [f"```python\n{name}{inspect.signature(what)}\n```"]
    except ValueError:
        return []


def _text(what) -> str:
    return f"````text\n{inspect.getdoc(what) or ''}\n````"
