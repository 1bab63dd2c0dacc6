"""One clock for the machines of a run: what messages both ways say of another clock, and a recording's times by it.

The other clock is that of a process in a Linux time namespace, so it is known by how much it is ahead. That a run on
two hosts is put on one clock is tested where such hosts are, in test_attach.py.
"""

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from copy import deepcopy
from pathlib import Path

import pytest

from collectives.timed import Clock, uncertainty
from launch.kernel.hub import Hub
from launch.machine import listener as clocks
from launch.machine.listener import Listener
from launch.replay._one_clock import agreed
from launch.replay.recording import Captures, Recording
from tests.launch.hosts import ahead_by, needs_root

ROOT = Path(__file__).parents[2]
AHEAD = 100_000  # seconds
SLOW = 0.05  # seconds that the slow way takes longer
ROUNDING = 1e-9  # seconds; what doubles of that size cannot tell apart


def test_an_exchange_is_right_within_its_error_however_long_each_way_takes():
    dice = random.Random(19)
    for _ in range(1000):
        ahead, sent = dice.uniform(-1e6, 1e6), dice.uniform(0, 1e6)
        there, busy, back = (dice.choice([0, dice.expovariate(1000), dice.uniform(0, 1)]) for _ in range(3))
        came = sent + there + ahead
        seen = clocks.exchanged(sent, came, came + busy, sent + there + busy + back)
        assert abs(seen.seconds - ahead) <= seen.error + ROUNDING
        assert seen.error == pytest.approx((there + back) / 2, abs=ROUNDING), "no wider than it has to be"


def test_what_holds_meanwhile_covers_a_clock_that_drifts():
    dice = random.Random(5)
    for _ in range(200):
        ahead, drift, long = dice.uniform(-1e5, 1e5), dice.uniform(-5e-4, 5e-4), dice.uniform(0, 1e3)
        errors = [dice.uniform(0, 1e-3) for _ in range(2)]
        seen = [
            clocks.Offset(ahead + drift * at + dice.uniform(-error, error), error, at)
            for at, error in zip((0, long), errors, strict=True)
        ]
        whole = clocks.meanwhile(*seen)
        for at in (0, long / 3, long):
            assert abs(whole.seconds - (ahead + drift * at)) <= whole.error + ROUNDING
        assert whole.error <= sum(errors) + abs(drift) * long / 2 + ROUNDING


def test_a_quick_exchange_of_a_while_ago_says_more_than_a_slow_one_now():
    quick, slow = clocks.Offset(5.0, 1e-4, 0.0), clocks.Offset(5.2, 0.3, 100.0)
    assert clocks.latest(None, slow) is slow and clocks.latest(quick, slow) is quick
    assert clocks.latest(slow, quick) is quick
    assert clocks.latest(quick, slow._replace(at=100_000.0)) is not quick, "clocks drift"


class Relay:
    """Between a machine and the notebook at `port`, with seconds by which each way is slow."""

    def __init__(self, port: int):
        self.up = self.down = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._serve, args=(port,))]
        self.threads[0].start()

    def _serve(self, port: int) -> None:
        machine, _ = self.listener.accept()
        notebook = socket.create_connection(("127.0.0.1", port))
        for one, other, way in ((machine, notebook, "up"), (notebook, machine, "down")):
            self.threads.append(threading.Thread(target=self._carry, args=(one, other, way)))
            self.threads[-1].start()

    def _carry(self, one: socket.socket, other: socket.socket, way: str) -> None:
        try:
            while data := one.recv(1 << 16):
                time.sleep(getattr(self, way))  # this is the network
                other.sendall(data)
        except OSError:
            pass  # the other end has gone
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        self.listener.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """(hub, relay, what has come) of a machine whose clock is ahead, and whose messages go through the relay."""
    needs_root()
    monkeypatch.setenv("HOME", str(tmp_path))
    hub = Hub()
    listener = Listener(hub)
    ticket = Path(hub.run(listener.listen("127.0.0.1")).result())
    content = json.loads(ticket.read_text())
    relay = Relay(int(content["address"].rpartition(":")[2]))
    ticket.write_text(json.dumps(content | {"address": f"tcp://127.0.0.1:{relay.port}"}))
    command = [*ahead_by(AHEAD), sys.executable, "-m", "launch.machine", str(ticket)]
    started = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"})

    async def come():
        while not listener.machines:
            await listener.changed.wait()
            listener.changed.clear()
        return next(iter(listener.machines.values()))

    try:
        yield hub, relay, hub.run(come()).result(timeout=120)
    finally:
        relay.up = relay.down = 0.0
        hub.run(listener.close()).result(timeout=60)
        started.wait(timeout=60)
        relay.close()
        hub.close()
        assert not os.path.exists(hub.folder)


def test_a_clock_is_found_within_the_error_that_is_said_also_where_one_way_is_slow(machine):
    hub, relay, here = machine
    for relay.up, relay.down in ((0, 0), (SLOW, 0), (0, SLOW)):
        seen = hub.run(here.read_clock()).result(timeout=60)
        assert abs(seen.seconds - AHEAD) <= seen.error < AHEAD / 100
        assert seen.error >= (relay.up + relay.down) / 2, "nobody can know which of the two ways is slow"


RUN = """
x = torch.arange(4.0) + 10 * rank
dist.all_reduce(x)
work = dist.all_reduce(x, async_op=True)
if rank == 0: dist.send(x, 2)
if rank == 2: dist.recv(x, 0)
work.wait()
"""


def test_a_recording_has_the_times_of_all_ranks_by_one_clock(gang):
    """Captures of one machine, and the same tapes as two machines with other clocks would have stamped them."""
    tapes = [answer["recording"] for answer in gang.run(RUN, 3)]
    known = (Clock((0, 1), 7200.5, 1e-4), Clock((2,), -31.25, 3e-4))
    away = deepcopy(tapes)
    for tape, clock in zip(away, (known[0], known[0], known[1]), strict=True):
        for event in tape["events"]:
            event["times"] = [None if time is None else time + round(1e9 * clock.offset) for time in event["times"]]
    here, there = Recording(tapes), Recording(Captures(away, clocks=known))
    assert there.events == here.events and there.step_seconds == here.step_seconds
    assert here.clocks == () and there.clocks == there.part(1, 1).clocks == known
    assert uncertainty(there.clocks) == pytest.approx(4e-4) and uncertainty(known[:1]) == uncertainty(()) == 0
    assert Recording(away).events != here.events


@pytest.mark.parametrize("wrong", [500.0, -500.0])
def test_nothing_comes_before_its_cause_by_clocks_that_are_wrong_within_their_error(gang, wrong):
    tapes = [answer["recording"] for answer in gang.run(RUN, 3)]
    told = Clock((0, 1), 0.0, 1e-6), Clock((2,), wrong, 600.0)  # in truth they are one clock
    run = Recording(Captures(tapes, clocks=told))
    sides: dict = {}
    for event in run.events:
        sides.setdefault(event.match, []).append(event)
    assert len(sides) == 3 and all(len({each.rank for each in those}) > 1 for those in sides.values())
    for those in sides.values():
        begun = max(each.start for each in those if each.op != "recv")
        assert all(each.end >= begun for each in those if each.op != "send")
    assert all(abs(clock.offset) <= clock.error for clock in run.clocks)
    assert abs(run.clocks[1].offset) < abs(wrong) and run.clocks[1].error < 2 * told[1].error


def test_offsets_are_moved_within_their_errors_until_they_agree_with_what_was_seen():
    dice, moved = random.Random(7), 0
    for _ in range(300):
        truth = [dice.randrange(-(10**14), 10**14) for _ in range(dice.randint(2, 5))]  # nanoseconds
        errors = [dice.randrange(1, 10**6) for _ in truth]
        told = tuple(
            Clock((rank,), (ahead + dice.randint(-error, error)) / 1e9, (error + 1) / 1e9)
            for rank, (ahead, error) in enumerate(zip(truth, errors, strict=True))
        )
        pairs = [(here, there) for here in range(len(truth)) for there in range(len(truth)) if here != there]
        most = {
            (here, there): truth[there] - truth[here] + dice.randrange(10**5)
            for here, there in dice.sample(pairs, dice.randint(1, len(pairs)))
        }
        found = agreed(told, most)
        offsets = [round(1e9 * clock.offset) for clock in found]
        assert all(offsets[there] - offsets[here] <= ns for (here, there), ns in most.items())
        for clock, before, ahead in zip(found, told, truth, strict=True):
            assert abs(clock.offset - ahead / 1e9) <= clock.error + 1e-9
            assert abs(clock.offset - before.offset) <= before.error + 1e-9
        moved += found != told
        assert agreed(found, most) == found, "what agrees stays"
        assert agreed(told, {(0, 1): 0, (1, 0): -1}) == told, "and so does what cannot agree"
    assert moved > 100
