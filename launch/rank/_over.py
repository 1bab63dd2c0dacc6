"""The messages of this rank that were waited for and whose handle is still there: a second wait for one is refused.

gloo counts a message once. A second wait for the same handle waits for another message, which never comes, and nothing
but the end of the process gets the rank out of it. torch allows two waits for a collective.
"""

from __future__ import annotations

import weakref

from launch.rank import callsite


class Over:
    """By their Work, which it does not keep alive."""

    def __init__(self):
        self._known: dict[int, tuple[weakref.ref, str]] = {}  # id(work) -> (work, "send" or "recv")

    def add(self, work, kind: str) -> None:
        key = id(work)
        self._known[key] = weakref.ref(work, lambda _: self._known.pop(key, None)), kind

    def refuse(self, work) -> None:
        """RuntimeError if this message was waited for."""
        known, kind = self._known.get(id(work), (None, ""))
        if known is not None and known() is work:
            line, file = callsite.line_and_file()
            where = f"line {line}" + (f" of {file}" if file else "")
            raise RuntimeError(
                f"{where} waits again for an i{kind} that is over: wait() once for each, and empty the list after "
                "each round"
            )
