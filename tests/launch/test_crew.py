"""Ranks that are closed while they start: the start ends with a sentence, and nothing of it stays."""

import threading
import time

import psutil

from launch.errors import LaunchError
from launch.ranks import Ranks


def test_closing_during_a_start_ends_it_with_a_sentence():
    ranks, said = Ranks(), []

    def start():
        try:
            ranks.ensure(4)
        except LaunchError as error:
            said.append(str(error))

    before = set(psutil.Process().children(recursive=True))
    starting = threading.Thread(target=start)
    starting.start()
    limit = time.monotonic() + 30
    while ranks.crew._work is None and time.monotonic() < limit:
        starting.join(0.005)
    ranks.close()
    starting.join(30)
    assert not starting.is_alive() and said == ["stopped while the ranks were starting; none runs"]
    gone, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, timeout=10)
    assert not alive
