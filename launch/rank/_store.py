"""The place where the ranks meet: a c10d store whose waits an interrupt can end.

torch's own stores wait in C++, where no signal reaches them; a rank that waits in `init_process_group` or `new_group`
for one that never comes would be lost. This one polls from Python, so that SIGINT works, and `close()` from
another thread frees whoever waits. The file lies in the session's private folder: it outlives every rank, rank 0 too.

A generation is a prefix of every key. After a rank was freed or replaced all ranks move on to the next generation and
meet again, undisturbed by what is left of the last.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from torch.distributed import DistStoreError, FileStore, Store

from launch.machine.kv_store import RemoteStore

FIRST_PAUSE = 0.0005  # seconds between two looks at the file; doubles up to LONGEST_PAUSE
LONGEST_PAUSE = 0.008


class PollStore(Store):
    """A store over the file `path`, or over the socket of a machine that is attached, "ipc://..."; raises
    DistStoreError when closed or late."""

    def __init__(self, path: str, generation: int = 0):
        super().__init__()
        self._file: Any = RemoteStore(path) if path.startswith("ipc:") else FileStore(path, -1)
        self._timeout = timedelta(minutes=30)
        self._closed = False
        self._awaited: list[str] = []
        self.generation = generation

    def open(self, generation: int) -> None:
        """Moves to another generation, where nothing is stored yet."""
        self.generation = generation
        self._closed = False

    def close(self) -> None:
        """Frees the thread that waits here, and any that comes, until `open`."""
        self._closed = True

    def missing(self) -> bool:
        """Whether a thread waits here, now, for something that is not there. From any thread."""
        awaited = self._awaited
        return bool(awaited) and not self.check(awaited)

    def _key(self, key: str) -> str:
        return f"{self.generation}:{key}"

    def set(self, key, value):
        self._file.set(self._key(key), value)

    def get(self, key):
        self.wait([key])
        return self._file.get(self._key(key))

    def add(self, key, value):
        return self._file.add(self._key(key), value)

    def compare_set(self, key, expected, desired):
        return self._file.compare_set(self._key(key), expected, desired)

    def delete_key(self, key):
        return self._file.delete_key(self._key(key))

    def num_keys(self):
        return self._file.num_keys()

    def check(self, keys):
        return self._file.check([self._key(key) for key in keys])

    def set_timeout(self, timeout):
        self._timeout = timeout

    @property
    def timeout(self):
        return self._timeout

    def wait(self, keys, timeout=None):
        deadline = time.monotonic() + (timeout or self._timeout).total_seconds()
        self._awaited = keys
        try:
            self._wait(keys, deadline)
        finally:
            self._awaited = []

    def _wait(self, keys, deadline: float) -> None:
        pause = FIRST_PAUSE
        while not self.check(keys):
            if self._closed:
                raise DistStoreError("the wait for the other ranks was ended")
            if time.monotonic() > deadline:
                raise DistStoreError(f"the other ranks did not come in time: {keys} are missing")
            # A file tells nobody that it has grown; the pause grows instead.
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
