"""Cells on a network of one's choice: real processes and real bytes, slower by what the network says; and nothing left.

A run is never quicker than its network, and that is asserted of each. That it is not slower is asserted of the quickest
of some, as a ratio to runs at another rate, since what else a machine does makes runs slower and none of them quicker.
"""

import math
import threading
from functools import partial

import numpy as np
import pytest

import collectives
from collectives import Link, Network, Topology, all_reduce, all_to_all, presets
from collectives.presets import PLAYED
from launch import networks
from launch.doctor.snapshot import How
from launch.execute import execute
from launch.ranks import Ranks
from launch.shared.errors import DeadlockError, UsageError
from launch.shared.wires import Wires
from widgets import Race, Timeline, TopologyMap

PATIENCE = 60  # seconds; a bound for what takes milliseconds
TRIES = 20
MESSAGE = """
import time
x = torch.full((SIZE,), float(rank))
def message():
    if rank == 0: dist.send(x, 1)
    if rank == 1: dist.recv(x, 0)
def timed(call):
    call()
    dist.barrier()
    began = time.perf_counter()
    call()
    dist.barrier()
    return time.perf_counter() - began
"""
DDP = """
from torch.nn.parallel import DistributedDataParallel
def model_with(hook=None):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(50, 50) for _ in range(4)])
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.005, broadcast_buffers=False)  # a bucket for each layer
    if hook is not None: ddp.register_comm_hook(None, hook)
    for _ in range(2): step(ddp)  # after the first step the buckets are made anew
    return ddp
def step(ddp):
    ddp.zero_grad()
    ddp(torch.full((2, 50), 1.0 + rank)).sum().backward()
def waits(state, bucket):
    dist.all_reduce(bucket.buffer().div_(world_size), async_op=True).wait()
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done
def does_not(state, bucket):
    work = dist.all_reduce(bucket.buffer().div_(world_size), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])
"""


@pytest.fixture(scope="module")
def ranks(warm):
    ranks = Ranks(fork_from=warm)
    ranks.ensure(4)
    yield ranks
    ranks.close()


@pytest.fixture(autouse=True)
def off_afterwards(ranks):
    """A cell that a test has left running would be waited for without an end: it is stopped then."""
    yield
    off = threading.Thread(target=ranks.play, args=(None,))
    off.start()
    off.join(PATIENCE)
    for _ in range(2):  # the second time ends a rank that does not listen
        if off.is_alive():
            ranks.interrupt()
            off.join(PATIENCE)
    if off.is_alive():
        ranks.restart()
        off.join()


def run(ranks, code, keep=None, record=False):
    for answer in ranks.execute(code, record=record):
        assert answer.how is How.LEFT, f"rank {answer.rank}: {answer.ename}: {answer.evalue} {answer.trouble}"
    return ranks.pull(keep) if keep else None


def longest(ranks, call, setup=""):
    """Seconds of the rank that takes longest."""
    setup = setup or MESSAGE.replace("SIZE", "50_000")
    return max(run(ranks, f"{setup}\nseconds = timed({call})", "seconds"))


def on(ranks, network, call, setup=""):
    """A function that measures that call on that network."""

    def measure():
        ranks.play(network)
        return longest(ranks, call, setup)

    return measure


def quickest(*measures, fit):
    """The least that each of them has taken when those `fit`, which they must within so many tries."""
    least = [math.inf] * len(measures)
    for _ in range(TRIES):
        least = [min(known, measure()) for known, measure in zip(least, measures, strict=True)]
        if fit(*least):
            return least
    raise AssertionError(least)


CALLS = ("message", "lambda: dist.all_reduce(x)", "lambda: dist.all_reduce(x, async_op=True).wait()")


@pytest.mark.parametrize("call", CALLS)
def test_bandwidth_is_obeyed(ranks, call):
    rates = [on(ranks, Network(alpha=0, beta=1 / rate), call) for rate in (1e6, 4e6)]
    slow, _ = quickest(*rates, fit=lambda slow, fast: 2.5 < slow / fast < 5)
    assert slow > 0.19  # 200 kB at 1 MB/s, whatever the machine does: less is impossible


@pytest.mark.parametrize("call", CALLS)
def test_latency_is_obeyed(ranks, call):
    four = MESSAGE.replace("SIZE", "4")
    latencies = [on(ranks, Network(alpha=alpha, beta=1e-12), call, four) for alpha in (0.02, 0.08)]
    short, _ = quickest(*latencies, fit=lambda short, long: 2.5 < long / short < 5)
    assert short > 0.02


@pytest.mark.parametrize("call", ["dist.barrier()", "dist.all_reduce(x)", "dist.all_reduce(x, async_op=True).wait()"])
def test_all_ranks_leave_a_collective_when_the_last_one_lets_them(ranks, call):
    """The ranks begin 50 ms apart; 80 ms or more after the last of them, all go on at once. (The network does not
    count the time in which a rank that is due has no processor.)"""
    code = f"import time\nx = torch.ones(4)\ndist.barrier()\ntime.sleep(0.05 * rank)\nbegan = time.monotonic()\n{call}"

    def apart():
        ranks.play(Network(alpha=0.04, beta=1e-12))
        began, ended = zip(*run(ranks, f"{code}\ntimes = [began, time.monotonic()]", "times"), strict=True)
        assert min(ended) > max(began) + 0.04
        return max(ended) - min(ended)

    assert quickest(apart, fit=lambda seconds: seconds < 0.02)


def test_messages_stand_in_the_order_in_which_they_are_received_not_sent(tmp_path):
    """Ranks 3, 2 and 1 send to rank 0, which receives from 1, 2 and 3: nobody waits for what is not asked for yet."""
    network = Network(alpha=0.0, beta=0.1, name="flat")
    betas, ways = networks.table(network, 4).values()
    wires = Wires(str(tmp_path / "wires"), 4, len(betas))
    for at, src in ((0.0, 3), (0.25, 2), (0.5, 1)):
        wires.sent(src, 0, src, at, 10, ways[src][0], betas)
    now = 0.5
    for src in (1, 2, 3):
        assert wires.met(src, 0, src) == (0, 0)
        wires.asked(src, 0, src, now, ways[src][0], betas)
        now = wires.met(src, 0, src)[1]
        assert now == pytest.approx(0.5 + src)
    wires.close()


def test_a_rank_has_one_card_for_all_it_sends_and_one_for_all_it_gets(ranks):
    """Three messages out of one rank, or into one, take three times as long as one message."""
    network = Network(alpha=0, beta=1 / 2e6)
    fan = "\n".join(
        [
            MESSAGE.replace("SIZE", "50_000"),
            "def out():",
            "    if rank == 0: [work.wait() for work in [dist.isend(x, peer) for peer in (1, 2, 3)]]",
            "    else: dist.recv(x, 0)",
            "def into():",
            "    if rank == 0:",
            "        rows = torch.empty(3, len(x))",
            "        [work.wait() for work in [dist.irecv(rows[peer - 1], peer) for peer in (1, 2, 3)]]",
            "    else: dist.send(x, 0)",
        ]
    )
    for call in ("out", "into", "lambda: dist.gather(x, [x.clone() for _ in range(4)] if rank == 0 else None)"):
        one_and_three = on(ranks, network, "message"), on(ranks, network, call, fan)
        quickest(*one_and_three, fit=lambda one, three: 2 < three / one < 4.5)


def test_links_between_machines_are_shared_where_the_topology_shares_them(ranks):
    """Two messages from machine to machine at once: with a card for each they take as long as one, else twice that."""
    code = MESSAGE.replace("SIZE", "50_000") + (
        "def both():\n    if rank < 2: dist.send(x, rank + 2)\n    else: dist.recv(x, rank - 2)\n"
    )
    slow, fast = Link(0, 1 / 2e6), Link(0, 1 / 200e6)
    cards, one_card = (Topology.machines(2, gpus=2, inside=fast, between=slow, nic=nic) for nic in ("gpu", "machine"))
    ways = on(ranks, cards, "both", code), on(ranks, one_card, "both", code)
    quickest(*ways, fit=lambda apart, shared: 1.5 < shared / apart < 3)
    ways = on(ranks, cards, "both", code), on(ranks, one_card, "message", code)
    quickest(*ways, fit=lambda between, inside: inside < between / 2)  # ranks 0 and 1 are in one machine


def test_a_pair_that_sends_both_ways_at_once_needs_the_time_of_one_way(ranks):
    code = MESSAGE.replace("SIZE", "200_000") + (
        "y = torch.empty_like(x)\n"
        "def swap():\n"
        "    if rank < 2:\n"
        "        got = dist.irecv(y, 1 - rank)\n"
        "        dist.isend(x, 1 - rank).wait()\n"
        "        got.wait()\n"
    )
    ways = [on(ranks, Network(alpha=0, beta=1 / 4e6), call, code) for call in ("message", "swap")]
    quickest(*ways, fit=lambda one, both: both < 1.6 * one)


def test_collectives_of_one_price_take_one_time(ranks):
    """In reduce some rank sends its ring and the root's part over one connection, in all_to_all each pair sends both
    ways: neither may slow the other down."""
    code = MESSAGE.replace("SIZE", "1_000_000") + "y, piece = x.clone(), x[:250_000].clone()\n"
    for pair in (
        ("lambda: dist.all_reduce(x)", "lambda: dist.reduce(x, 0)"),
        ("lambda: dist.all_gather_single(y, piece)", "lambda: dist.all_to_all_single(y, x)"),
    ):
        calls = [on(ranks, Network(alpha=0, beta=1 / 10e6), call, code) for call in pair]
        quickest(*calls, fit=lambda price, same: same < 1.35 * price)


def test_an_uneven_all_to_all_takes_as_long_as_the_card_that_gets_most(ranks):
    """Sizes as in an unbalanced mixture of experts, against the model's price."""
    code = MESSAGE.replace("SIZE", "0") + (
        "def exchange(row):\n"
        "    comes = [row[rank]] * world_size\n"
        "    x, out = torch.ones(sum(row), 1000), torch.empty(sum(comes), 1000)\n"
        "    return lambda: dist.all_to_all_single(out, x, comes, row)\n"
    )
    network = Topology.machines(4, gpus=1, inside=Link(0, 1e-9), between=Link(0, 1 / 4e6))
    prices, calls = [], []
    for row in [25] * 4, [70, 10, 10, 10]:
        schedule = all_to_all.uneven([row] * 4)
        prices.append(schedule.cost(nbytes=schedule.chunks * 4000, network=network).seconds)
        calls.append(on(ranks, network, f"exchange({row})", code))
    assert prices[1] > 2.5 * prices[0]
    quickest(*calls, fit=lambda *took: all(0.9 * due < t < 1.5 * due for t, due in zip(took, prices, strict=True)))


def test_groups_that_a_cell_makes_are_slow_too(ranks):
    code = MESSAGE.replace("SIZE", "50_000") + "group = dist.new_group()\n"
    call = "lambda: dist.all_reduce(x, group=group)"
    rates = [on(ranks, Network(alpha=0, beta=1 / rate), call, code) for rate in (1e6, 4e6)]
    quickest(*rates, fit=lambda slow, fast: 2.5 < slow / fast < 5)


def test_a_deadlock_is_proved_and_the_next_cell_is_as_slow_as_before(ranks):
    ranks.play(Network(alpha=0.05, beta=1 / 1e6))
    answers = ranks.execute("if rank != 2: dist.all_reduce(torch.ones(4))")
    assert answers[0].trouble.kind is DeadlockError and "rank 2" in answers[0].trouble.sentence
    assert longest(ranks, "message") > 0.19


def test_a_rank_that_dies_comes_back_on_the_same_network(ranks):
    ranks.play(Network(alpha=0, beta=1 / 1e6))
    answers = ranks.execute("import os\nif rank == 3: os._exit(1)\ndist.all_reduce(torch.ones(100_000))")
    assert answers[3].how is How.DIED
    assert longest(ranks, "lambda: dist.all_reduce(x)") > 0.19


class StopsWhenAllWait:
    """A viewer that presses the stop button, or does what is given, as soon as every rank waits with that note."""

    def __init__(self, ranks, then=None, note=""):
        self.then, self.still, self.note = then or ranks.interrupt, set(range(4)), note

    def state(self, rank, state, note="", *_):
        if state == "waiting" and self.note in note and self.still:
            self.still.discard(rank)
            if not self.still:
                self.then()

    def __getattr__(self, name):
        return lambda *args: None


def test_stop_ends_what_the_network_alone_delays_and_restart_keeps_the_network(ranks):
    run(ranks, "x = torch.ones(4)")
    reduced = "lambda: dist.all_reduce(torch.ones(50_000))"
    message = "if rank == 0: dist.send(x, 1)\nelse: dist.recv(x, rank - 1)"
    for cell, note in (("dist.all_reduce(x)", "all_reduce #1, line 1, the network takes "), (message, "")):
        ranks.play(Network(alpha=10, beta=1 / 1e6))
        answers = ranks.execute(cell, viewer=StopsWhenAllWait(ranks, note=note))
        assert {answer.ename for answer in answers} == {"KeyboardInterrupt"}, (cell, [a.ename for a in answers])
        ranks.play(Network(alpha=0, beta=1 / 1e6))
        assert longest(ranks, reduced) > 0.19
    ranks.restart()
    assert longest(ranks, reduced) > 0.19
    ranks.play(None)
    quickest(partial(longest, ranks, reduced), fit=lambda without: without < 0.19)


def test_a_collective_is_not_completed_before_the_network_has_carried_it(ranks):
    """It is asked about for half of its time, and not waited for."""
    ranks.play(Network(alpha=0.1, beta=1e-12))
    run(ranks, "import time\nx = torch.ones(4)\nbegan = time.monotonic()\nwork = dist.all_reduce(x, async_op=True)\n"
        "while not work.is_completed(): time.sleep(0.001)\nseconds = time.monotonic() - began")  # fmt: skip
    assert min(ranks.pull("seconds")) > 0.5


FREE = """
from time import monotonic
links = get_ipython().kernel.requests.tap.network.wires.links
free = all(sum(times) <= monotonic() for times in zip(links.begun, links.data, links.latency))
"""


@pytest.mark.parametrize("how", ["stop", "restart"])
def test_what_a_cell_left_on_the_links_does_not_delay_the_next_one(ranks, how):
    """A thousand bytes a second: what was cut off would have been under way for ten minutes."""
    ranks.play(Network(alpha=0, beta=1e-3))
    assert all(run(ranks, FREE, "free"))
    if how == "stop":
        ranks.execute("dist.all_reduce(torch.ones(100_000))", viewer=StopsWhenAllWait(ranks))
    else:
        restart_beside(ranks, "dist.all_reduce(torch.ones(100_000))")
    assert all(run(ranks, FREE, "free"))
    run(ranks, "dist.all_reduce(torch.ones(4))")


def restart_beside(ranks, code):
    """Restarts the ranks while they run that cell, in which all of them wait."""
    waiting, told = threading.Event(), []
    viewer = StopsWhenAllWait(ranks, waiting.set)
    cell = threading.Thread(target=lambda: told.append(ranks.execute(code, viewer=viewer)))
    cell.start()
    assert waiting.wait(PATIENCE)
    ranks.restart()
    cell.join(PATIENCE)
    assert [answer.how for answer in told[0]] == [How.DIED] * 4
    assert not ranks.take_notices() and ranks.size == 4


def test_nobody_is_accused_because_a_network_is_slow(ranks):
    """A message that takes seconds, while everybody waits for it: longer than the doctor's patience."""
    ranks.play(Network(alpha=1.5, beta=1 / 1e6))
    run(ranks, MESSAGE.replace("SIZE", "4") + "message(); dist.barrier()")
    ranks.play(Network(alpha=0, beta=1 / 0.5e6))
    run(ranks, MESSAGE.replace("SIZE", "250_000") + "y = x.clone()\nmessage()\nif rank == 2: dist.recv(y, 3)\n"
        "if rank == 3: dist.send(y, 2)\ndist.reduce(y, 0)")  # fmt: skip


def test_a_proof_does_not_wait_for_bytes_that_change_nothing(ranks):
    """A barrier without rank 2, while rank 1 has ten seconds of bytes to receive: those who wait are free before."""
    ranks.play(Network(alpha=0, beta=1e-5))
    run(ranks, "x = torch.ones(250_000)")
    begin = "if rank == 0: sent = dist.isend(x, 1)\nif rank == 1: came = dist.irecv(x, 0)\n"
    answers = ranks.execute(f"import time\nbegan = time.monotonic()\n{begin}if rank != 2: dist.barrier()")
    assert [answer.how for answer in answers] == [How.FREED, How.FREED, How.LEFT, How.FREED]
    assert "rank 2" in answers[0].trouble.sentence
    assert max(run(ranks, "seconds = time.monotonic() - began", "seconds")) < 8


def buckets_of(ranks, code, rank=0):
    """The calls of DDP's buckets on a rank, in the order of their begin."""
    run(ranks, code, record=True)
    events = sorted((event for event in ranks.recording().events if event.rank == rank), key=lambda event: event.start)
    return [event for event in events if event.match.part]


def test_a_receive_from_any_rank_is_recorded(ranks):
    ranks.play(Network(alpha=0.01, beta=1e-9))
    code = "x = torch.tensor([10.0 * rank])\nif rank == 0:\n    dist.recv(x)\nelif rank == 2:\n    dist.send(x, 0)"
    assert run(ranks, code, "x", record=True)[0].item() == 20
    assert [(event.op, event.rank) for event in ranks.recording().events] == [("recv", 0), ("send", 2)]


def test_collectives_under_way_at_once_go_one_after_the_other(ranks):
    """A link carries one thing after the other, also of calls that nobody waits for in between."""
    network = Network(alpha=0.02, beta=1e-12)
    ranks.play(network)
    run(ranks, "import time\nxs = [torch.ones(4) for _ in range(5)]\ndist.barrier()\nbegan = time.perf_counter()\n"
        "for work in [dist.all_reduce(x, async_op=True) for x in xs]: work.wait()")  # fmt: skip
    taken = min(run(ranks, "seconds = time.perf_counter() - began", "seconds"))
    assert taken > 4 * all_reduce.ring(ranks=4).cost(nbytes=16, network=network).seconds


def test_the_buckets_of_ddp_pay_latency_and_are_seen_to_overlap_with_the_backward_pass(ranks):
    """By order: the next bucket's gradients are computed while one is under way, or only after it."""
    run(ranks, DDP + "ddp, waiting, hooked = model_with(), model_with(waits), model_with(does_not)")
    network = Network(alpha=0.1, beta=1e-12)
    ranks.play(network)
    least = (
        all_reduce.ring(ranks=4).cost(nbytes=4, network=network).seconds / 2
    )  # a busy machine's delays are taken off
    grads = "grads = [p.grad.clone() for p in {}.parameters()]"
    for name in ("ddp", "hooked"):
        found = buckets_of(ranks, f"step({name})")
        assert [event.match.part for event in found] == [f"bucket {i}" for i in range(len(found))] and len(found) == 4
        for bucket, following in zip(found, found[1:], strict=False):
            assert bucket.start < following.start < bucket.finished, "computed meanwhile"
        waits = {event.wait for event in found}
        assert len(waits) == 1 and found[-1].start < min(waits), "the reducer waits when all is computed"
        assert all(event.finished <= event.end and event.finished - event.start > least for event in found)
        assert sorted(event.end for event in found) == [event.end for event in found]
    overlapped = ranks.recording()
    ranks.play(Network(alpha=0.02, beta=1e-12))
    one_after_the_other = buckets_of(ranks, "step(waiting)")
    assert [event.match.part for event in one_after_the_other] == [event.match.part for event in found]
    for bucket, following in zip(one_after_the_other, one_after_the_other[1:], strict=False):
        assert bucket.end < following.start
    shown = [call for call in Timeline(overlapped).calls if call["rank"] == 0]
    assert [call["part"] for call in shown] == [event.match.part for event in found]
    run(ranks, grads.format("ddp") + "\nstep(waiting)\n"
        "assert all(map(torch.equal, grads, [p.grad for p in waiting.parameters()]))")  # fmt: skip


def test_ddp_is_freed_on_a_slow_network_and_goes_on(ranks):
    run(ranks, DDP + "ddp = model_with()")
    ranks.play(Network(alpha=0.1, beta=1e-12))
    run(ranks, "step(ddp)")  # seconds in C++, of which nobody is accused
    answers = ranks.execute("if rank != 2: step(ddp)")
    assert answers[0].trouble.kind is DeadlockError and "wait in backward" in answers[0].trouble.sentence
    run(ranks, "step(ddp)")


def test_a_schedule_runs_on_the_network_that_prices_it(ranks):
    network = Network(alpha=2e-3, beta=1 / 4e6)
    ranks.play(network)

    def measured(schedule):
        run(ranks, "import time\nx = torch.ones(250_000)\ndist.barrier()")
        run(ranks, "began = time.perf_counter()")
        execute(schedule, "x", ranks)
        taken = max(run(ranks, "seconds = time.perf_counter() - began", "seconds"))
        assert taken > 0.95 * schedule.cost(nbytes=1e6, network=network).seconds
        assert ranks.pull("x")[3].tolist()[:2] == [4.0, 4.0]
        return taken

    ways = [partial(measured, schedule) for schedule in (all_reduce.naive(ranks=4), all_reduce.ring(ranks=4))]
    quickest(*ways, fit=lambda naive, ring: naive > 1.5 * ring)


def test_what_went_where_is_counted(ranks):
    ranks.play(Topology.machines(2, gpus=2, inside=Link(0, 1 / 50e6), between=Link(0, 1 / 20e6)))
    run(ranks, "x = torch.ones(500_000)\nif rank == 1: dist.send(x, 2)\nif rank == 2: dist.recv(x, 1)")
    carried = ranks.carried
    assert carried.bytes[1][2] == 2e6 == sum(map(sum, carried.bytes))
    links = carried.by_link(ranks.network)
    assert links["nic of gpu 1 out"] == links["nic of gpu 2 in"] == max(links.values()) == 2e6
    assert carried.out_of_nics(ranks.network) == {"nic of gpu 1": 2.0}
    run(ranks, "dist.all_reduce(x)")
    assert ranks.carried.bytes == tuple(
        tuple(3_000_000 * (dst == (src - 1) % 4) for dst in range(4)) for src in range(4)
    )


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("etherent", "there is no network 'etherent': there are wifi, ethernet, 10GbE, infiniband, nvlink, gpus; "
         "did you mean ethernet?"),
        (3, "network is a Network or a Topology, for example Network(1e-5, 1e-9), got 3"),
        (Topology.ring(2, Link(0, 1e-9)), "ring of 2 ranks has 2 ranks, and 4 are needed: take a larger network or "
         "fewer ranks"),
        (Network(1e-3, 0), "a network that ranks run on needs a beta above 0: 1 / bandwidth, in seconds per byte"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_said_and_changes_nothing(ranks, network, said):
    ranks.play("10GbE")
    with pytest.raises(UsageError) as raised:
        ranks.play(network)
    assert str(raised.value) == said
    assert ranks.network == presets.played("10GbE", 4)


@pytest.mark.parametrize("name", presets.PLAYED)
def test_every_name_runs(ranks, name):
    ranks.play(name)
    run(ranks, "x = torch.ones(1000)\ndist.all_reduce(x)\nassert x[0] == 4")


def test_a_notebook_says_what_each_cell_runs_on(notebook):
    shown = "RankLog(ranks=4, network='ethernet, 10 times slower: 12.5 MB/s, 1 ms')"

    def log(code):
        output = notebook.run(code)
        assert not output.error
        return output, [data["text/plain"] for data in output.displays if data and "RankLog" in data["text/plain"]]

    cell = "dist.all_reduce(torch.ones(500_000))\nNone"
    assert log(f"%%ranks 4 --network ethernet\n{cell}")[1] == [shown]
    assert log(f"%%ranks\n{cell}")[1] == ["RankLog(ranks=4)"]  # of that cell alone
    said = notebook.run("%ranks network ethernet").stdout
    assert said == "cells run on ethernet, 10 times slower: 12.5 MB/s, 1 ms; %ranks network off ends it\n"
    output, logs = log(f"%%ranks\n{cell}")
    assert logs == [shown] and output.stdout == ""
    assert log("%%ranks --network off\nNone")[1] == ["RankLog(ranks=4)"]
    assert log(f"%%ranks\n{cell}")[1] == [shown]
    assert notebook.run("%ranks network off").stdout.startswith("cells run without a network of their own")
    assert log("%%ranks\nNone")[1] == ["RankLog(ranks=4)"]


ANYWAY = "your machine needs about 300 us for a message, this network {}: times of short messages will be too long"
FAST = (
    "10 GB/s for each of 4 ranks is more than a laptop moves (about 2 GB/s in all): what you measure is this machine; "
)
FAST += ".slower(20) of that network fits, and keeps who wins"
LATENCIES = {  # (alpha, beta) -> what is said before a cell on 4 ranks
    (1e-3, 1e-7): "",
    (1e-5, 1e-7): ANYWAY.format("10 us"),
    (0.0, 1e-7): ANYWAY.format("none"),
    (1e-4, 1e-10): f"{FAST}\n{ANYWAY.format('100 us')}",
}


@pytest.mark.parametrize("alpha, beta", LATENCIES)
def test_what_the_machine_itself_takes_is_said_of_latency_too(alpha, beta):
    assert networks.too_fast(Network(alpha, beta), 4) == LATENCIES[alpha, beta]


def test_a_network_faster_than_any_is_slowed_down_by_enough():
    assert ".slower(10000000) of that network fits" in networks.too_fast(Network(1e-3, 1e-15), 4)


@pytest.mark.parametrize("name", PLAYED)
def test_the_networks_that_have_names_are_none_too_fast(name):
    assert networks.too_fast(PLAYED[name](4), 4) == ""


def test_a_notebook_takes_a_network_of_its_own_and_says_what_is_wrong_with_one(notebook):
    notebook.run("from collectives import Link, Network, Topology, presets")
    assert not notebook.run("launch.network(Topology.machines(2, 2, Link(1e-3, 1e-7), Link(2e-3, 2e-7)))").error
    output = notebook.run("%%ranks 4\ndist.barrier()")
    assert not output.error and "2 machines x 2 GPUs" in output.displays[0]["text/plain"]
    output = notebook.run("%%ranks 8\ndist.barrier()")
    assert output.ename == "UsageError" and "has 4 ranks, and 8 are needed: take a larger network" in output.evalue
    assert not notebook.run("launch.network(presets.dgx_h100())").error
    output = notebook.run("%%ranks\nNone")
    assert output.stdout.startswith("450 GB/s for each of 4 ranks is more than a laptop moves (about 2 GB/s in all)")
    assert ".slower(1000) of that network fits" in output.stdout
    for code, said in (
        ("%%ranks --network etherent\nNone", "did you mean ethernet?"),
        ("%%ranks --network\nNone", "--network needs a value, as in %%ranks --network ethernet"),
        ("%ranks network fast", "there is no network 'fast': there are wifi, ethernet"),
        ("launch.network(7)", "network is a Network or a Topology"),
        (
            "from collectives import Network\nlaunch.network(Network(100, 1e-9))",
            "each message on this network takes 100 s: alpha is in seconds",
        ),
    ):
        output = notebook.run(code)
        assert output.ename == "UsageError" and said in output.evalue, code
    assert "cells run on 4 x DGX H100" in notebook.run("%ranks network").stdout


def test_a_recording_knows_what_it_ran_on_and_so_does_its_file(ranks, tmp_path):
    network = Topology.machines(2, gpus=2, inside=Link(1e-3, 1 / 50e6), between=Link(4e-3, 1 / 10e6), nic="machine")
    ranks.play(network)
    run(ranks, "x = torch.full((200_000,), float(rank))\ny = torch.empty_like(x)")
    code = "if rank == 0: dist.send(x, 1)\nif rank == 1:\n    dist.recv(y, 0)\n    dist.send(y, 2)\n"
    run(ranks, code + "if rank == 2: dist.recv(y, 1)", record=True)
    recording = ranks.recording()
    recording.save(tmp_path / "run.json")
    loaded = collectives.load(tmp_path / "run.json")
    assert recording.network is network
    for told in (recording, loaded):
        assert told.carried.by_link(told.network)["nic of machine 0 out"] == 8e5
        near, far = told.step_seconds
        # 800 kB at 50 and at 10 MB/s; a machine that is busy with other things is forgiven its delays
        assert near > 0.008 and near + far > 0.05, (near, far)
        shown = repr(Timeline(told))
        assert shown.endswith("one network card per machine: 50 MB/s and 10 MB/s, 1 ms and 4 ms')"), shown
        messages = [(call["latency"], round(call["transfer"], 4)) for call in Timeline(told).calls]
        assert sorted(messages) == [(1e-3, 0.016), (1e-3, 0.016), (4e-3, 0.08), (4e-3, 0.08)]
        race = Race(told, told)
        assert race.measured and [step["lines"][0][0] for step in race.metas[0]["work"]] == [near, far]
        assert not Race(told, told, nbytes=1e6).measured
        links = [name.replace("nic", "NIC (network card)") for name in network.names(4)]
        assert TopologyMap(told).room["links"] == links
        assert np.frombuffer(TopologyMap(told).data)[:16].max() == 8e5
    ring = all_reduce.ring(ranks=4)
    assert ring.cost(nbytes=1e6, network=loaded.network) == ring.cost(nbytes=1e6, network=network)
    ranks.play("ethernet")
    run(ranks, "dist.all_reduce(x)", record=True)
    ranks.recording().save(tmp_path / "run.json")
    assert ranks.recording().network.name == "ethernet, 10 times slower"
    assert collectives.load(tmp_path / "run.json").network == presets.played("ethernet", 4)
    ranks.play(None)
    run(ranks, "dist.all_reduce(x)", record=True)
    assert ranks.recording().network is None and ranks.recording().carried is None
