"""What is photographed: every widget in the states that a room sees, each with data that never changes.

A scene is a widget and the keys that are pressed in it. Nothing here comes from a real run: measured times would make
another picture every day. The main states are photographed at every size, the others at one: the repository keeps all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import traitlets

from collectives import Link, Schedule, Topology, Transfer, all_reduce, broadcast, pipeline, presets
from collectives.state import empty_cells
from collectives.timed import Match, Timed
from widgets import (
    Butterfly,
    Drift,
    Memory,
    MemoryRun,
    Mesh,
    Player,
    Question,
    Race,
    RankLog,
    SlotGrid,
    Square,
    Timeline,
    Tokens,
    TopologyMap,
    WaitFor,
    Zoo,
    cost_explorer,
)
from widgets.base import Widget


@dataclass(frozen=True)
class Scene:
    """A widget, the keys pressed on it, and the sizes that are kept."""

    make: Callable[[], Widget]
    keys: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ("laptop", "projector", "phone")


def log(finished: bool = False) -> RankLog:
    """Four ranks: one prints in colours, one repeats the others' line, one has failed, one waits."""
    log = RankLog(ranks=4)
    for rank in range(4):
        log.write(rank, "stdout", f"loss {0.25 * rank:.2f} on rank {rank}\n")
        log.write(rank, "stdout", "the same on every rank\n")
    log.write(1, "stdout", "\x1b[31mred\x1b[0m \x1b[1;32mbold green\x1b[0m \x1b[44mon blue\x1b[0m\n")
    log.write(2, "stderr", "ValueError: rank 2 has no chunk 7\n")
    for rank, state in enumerate([("running", ""), ("done", ""), ("failed", "ValueError"), ("waiting", "in recv")]):
        log.state(rank, *state)
    log._flush()
    if finished:
        log.finish()
    return log


def timeline() -> Timeline:
    """Rank 0 computes while its all_reduce is under way, rank 1 waits for it; rank 2 comes last; then 0 sends to 1."""
    summed, message = Match(0, "all_reduce #1 of world", 3), Match(1, "message #1 from rank 0 to rank 1", 2)

    def call(rank, op, peer, nbytes, line, match, *times):
        return Timed(rank, op, peer, nbytes, line, f"work = dist.{op}(x, async_op=True)", match, *times)

    calls = [
        call(0, "all_reduce", None, 4096, 3, summed, 0.0, 0.1, 0.8, 0.9, 0.9),
        call(1, "all_reduce", None, 4096, 3, summed, 0.05, 0.1, 0.1, 0.9, 0.9),
        call(2, "all_reduce", None, 4096, 3, summed, 0.6, 0.65, 0.65, 0.9, 0.9),
        call(0, "send", 1, 2_000_000, 7, message, 0.95, 0.96, 0.96, 1.0, None),
        call(1, "recv", 0, 2_000_000, 9, message, 0.95, 0.96, 0.96, 1.0, None),
    ]
    return Timeline(SimpleNamespace(events=calls, ranks=3), chosen=0)


def backward() -> Timeline:
    """DDP on 4 ranks: three buckets go out while gradients are still computed, the reducer waits in the end."""
    calls = []
    for number in range(3):
        match = Match(number, f"all_reduce #{number + 1} of world", 4, f"bucket {number}")
        for rank in range(4):
            begun = 0.2 + 0.3 * number + 0.02 * rank
            times = (begun, begun + 0.02, 1.1, 1.25 + 0.25 * number, 1.25 + 0.25 * number)
            calls.append(Timed(rank, "all_reduce", None, 4_000_000, 4, "loss.backward()", match, *times))
    return Timeline(SimpleNamespace(events=calls, ranks=4), chosen=4)


def maximum() -> Player:
    """A ring like that of a run whose ranks take the maximum where the textbook's ring adds."""
    stays = "Each rank keeps the maximum of what arrives and what it has."
    steps = [(step.phase, stays, step.transfers) for step in all_reduce.ring(ranks=4).steps]
    ring = Schedule.from_steps("all_reduce", "ring", 4, 4, steps)
    ring.ways = lambda index: ["max" if t.op == "reduce" else "" for t in ring.steps[index].transfers]
    return Player(ring, step=2)


def made() -> Schedule:
    """Like a recorded run: what is sent, what ranks compute themselves, what came about otherwise."""
    sent = [(0, 4, "dist.send(x[:1], 1)"), (1, 7, "dist.send(x[1:], 2)"), (1, 9, "dist.send(buf[:1], 2)")]
    steps = [
        (
            "copy",
            "What arrives is kept: rank 0 sends chunk 0 to rank 1, rank 1 sends chunk 1 to rank 2.",
            [_moved(0, 1, 0, "x", "buf"), _moved(1, 2, 1, "x", "buf"), _new(0, 3, 1, "x")],
            sent[:2],
        ),
        ("reduce", "Ranks add what they have.", [_moved(1, 1, 0, "x", "buf", "reduce"), _new(2, 9, 0, "x")], []),
        (
            "reduce",
            "What arrives is added: rank 1 sends chunk 0 to rank 2.",
            [_moved(1, 2, 0, "buf", "x", "reduce")],
            sent[2:],
        ),
    ]
    start = {"x": all_reduce.ring(ranks=3).start().cells["data"][:, :2]}
    run = Schedule.from_steps("recorded", "run", 3, 2, steps, buffers=("x", "buf"), start=start)
    run.ways = [["", "", "computed"], ["sum", "changed outside torch"], ["sum"]].__getitem__
    return run


def forgotten() -> Player:
    """A broadcast whose root has forgotten rank 3."""
    steps = [("copy", step.caption, step.transfers) for step in broadcast.flat(ranks=3).steps]
    run = Schedule.from_steps("recorded", "run", 4, 1, steps)
    run.stuck = [(3, 0, "recv", 7)]
    return Player(run)


def _moved(src, dst, chunk, src_buffer, dst_buffer, op="copy") -> Transfer:
    return Transfer(src, dst, chunk, op, src_buffer=src_buffer, dst_buffer=dst_buffer)


def _new(rank, number, chunk, buffer) -> Transfer:
    return Transfer(rank, rank, number, "new", dst_chunk=chunk, src_buffer=buffer, dst_buffer=buffer)


CHOICES = [
    {"text": "the old values", "why": "`send` returns when its buffer is free again.", "step": None},
    {"text": "the new values", "why": "They are written after the data has left.", "step": None},
    {"text": "an error", "why": "Nothing compares what was sent with what is there later.", "step": None},
]
CHANGED = {"kind": "choose", "name": "changed", "answers": CHOICES, "right": 0}


def question() -> Question:
    """One of three is chosen; in front of a room it is a hand."""
    asked = Question()
    asked.ask(
        CHANGED | {"text": "Rank 0 runs `dist.send(x, 1)` and changes `x` in the next line. What does rank 1 get?"}
    )
    return asked


def closed() -> Player:
    """What a picture shows while its question is open."""
    player = Player(all_reduce.ring(ranks=4))
    right = {"text": "2*p*(p-1)", "why": "Each rank sends in each of 2(p-1) steps.", "step": None}
    number = {"kind": "number", "name": "messages", "is": right, "wrong": [], "unit": "messages", "p": 4, "within": 0.0}
    player.ask(number | {"text": "How many messages does a ring of four ranks send in all?"})
    return player


def race() -> Race:
    return Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6)


def slot_grid() -> SlotGrid:
    orders = pipeline.gpipe(4, 8), pipeline.one_f_one_b(4, 8), pipeline.interleaved(4, 8), pipeline.zero_bubble_h2(4, 8)
    return SlotGrid(*orders)


def pipelined() -> SimpleNamespace:
    """GPipe with 4 micro-batches on 4 ranks, as a clock would have it: a rank waits until its forward passes begin, and
    between these and its backward passes."""
    waits = [[(0, rank), (rank + 4, 13 - 2 * rank)] for rank in range(4)]
    times = [(rank, a, b) for rank, spans in enumerate(waits) for a, b in spans if b > a]
    ends = [(rank, 21 - 2 * rank, 21 - 2 * rank) for rank in range(4)]
    return SimpleNamespace(
        events=[Timed(r, "recv", None, 4, 1, "", None, a, b, None, None, None) for r, a, b in times + ends], ranks=4
    )


def topology_map() -> TopologyMap:
    flat, nested = all_reduce.ring(ranks=32), all_reduce.hierarchical(nodes=4, local=8)
    return TopologyMap(flat, nested, topology=presets.dgx_h100(), nbytes=1e9, step=5)


def small_map() -> TopologyMap:
    """A ring over two machines of four, whose busiest links have their amounts beside them."""
    room = Topology.machines(2, 4, inside=Link(2e-6, 1 / 400e9), between=Link(14e-6, 1 / 50e9), name="2 machines x 4")
    return TopologyMap(all_reduce.ring(8), topology=room, nbytes=1e9)


def butterflies() -> Butterfly:
    return Butterfly(all_reduce.halving_doubling(8), all_reduce.halving_doubling_far_first(8), local=4, step=2)


def mesh(collective: str = "all_reduce") -> Mesh:
    """A hierarchical all-reduce on two machines of four: what each rank calls, in its line and in its column."""
    events = []
    for rank in range(8):
        line, column = tuple(range(rank // 4 * 4, rank // 4 * 4 + 4)), (rank % 4, rank % 4 + 4)
        calls = [("reduce_scatter_single", line, 1e6), ("all_reduce", column, 25e4), ("all_gather_single", line, 1e6)]
        for start, (op, group, nbytes) in enumerate(calls):
            events.append(SimpleNamespace(rank=rank, op=op, group=group, bytes=nbytes, start=start, peer=None))
    run = SimpleNamespace(events=events, ranks=8, network=None, collective=collective)
    return Mesh(run, shape=(2, 4), names=("machine", "gpu"), local=4, step=2)


def dispatch(choice: np.ndarray, experts: int, capacity: int = 0) -> dict:
    """What a run of `choice` (ranks, tokens, k) would be: of each rank x, and the calls with what they brought."""
    ranks, tokens, k = choice.shape
    x = np.arange(1.0, 1 + ranks * tokens * 4).reshape(ranks, tokens, 4)
    local = experts // ranks
    sent: dict[int, list] = {expert: [] for expert in range(experts)}
    for rank in range(ranks):
        for expert in range(experts):
            mine = [x[rank, token] for token, wanted in enumerate(choice[rank]) if expert in wanted]
            mine = [*mine, *[np.zeros(4)] * capacity][:capacity] if capacity else mine
            sent[expert].append(mine)
    events = []
    for rank in range(ranks):
        pieces = (sent[e][s] for s in range(ranks) for e in range(rank * local, (rank + 1) * local))
        came = [row for piece in pieces for row in piece]
        back = len(came) if capacity else tokens * k
        for number, rows in enumerate([came, np.ones((back, 4))]):
            after = [np.array(rows).ravel().tolist()]
            match = Match(number, f"all_to_all_single #{number + 1} of world", ranks)
            events.append(SimpleNamespace(rank=rank, op="all_to_all_single", match=match, after=after))
    return {"run": SimpleNamespace(events=events, ranks=ranks), "x": [*x], "choice": [*choice]}


def tokens(step: int = 2, **more) -> Tokens:
    """A router that likes expert 0, and two places for each rank."""
    choice = [[0, 3, 0, 0, 2, 0], [0, 0, 2, 0, 2, 1], [0, 0, 1, 2, 3, 3], [0, 1, 1, 2, 3, 0]]
    return Tokens(**dispatch(np.array(choice)[..., None], 4, capacity=2), step=step, **more)


def pairs() -> Tokens:
    """Two experts for each token, two on each rank."""
    at = np.arange(24).reshape(4, 6)
    choice = np.stack([at * at % 8, (at * at + 1 + at % 4) % 8], axis=-1)
    gate = [np.stack([0.5 + token / 12, 0.3 + 0 * token], axis=-1) for token in np.tile(np.arange(6), (4, 1))]
    return Tokens(**dispatch(choice, 8), gate=gate, experts=8, step=2)


def held() -> list[dict]:
    """What chapter 12's four ranks hold in a step without ZeRO, with ZeRO-1 and with ZeRO-3."""
    plain = [("all_reduce", 2304, 2304, 4608), ("update", 2304, 2304, 4608)]
    one = [("reduce_scatter", 2880, 2880, 1152), ("update", 2880, 576, 1152), ("all_gather", 2880, 576, 1152)]
    three = [("all_gather", part, 0, 1152) for part in (704, 1664, 1664, 1664)]
    for gradients, *more in (1360, (1664, 272)), (1632, (704, 544)), (704,):
        three.append(("reduce_scatter", 576, gradients, 1152))
        three += [("all_gather", *parts, 1152) for parts in more]
    three.append(("update", 576, 576, 1152))
    return [{"no ZeRO": plain, "ZeRO-1": one, "ZeRO-3": three}] * 4


def drifting(alone: bool) -> Drift:
    """Two ranks, each with its half of the curve, for 100 steps of 0.2 times the gradient."""
    points = [[0, 1 / 3, 2 / 3, 1], [1, 4 / 3, 5 / 3, 2]]
    paths = [[[0.0, 0.0]], [[0.0, 0.0]]]
    for _ in range(100):
        slopes = []
        for seen, path in zip(points, paths, strict=True):
            errors = [path[-1][0] + path[-1][1] * x - x * x for x in seen]
            slopes.append([sum(errors) / 2, sum(e * x for e, x in zip(errors, seen, strict=True)) / 2])
        mean = [sum(slope) / 2 for slope in zip(*slopes, strict=True)]
        for path, slope in zip(paths, slopes, strict=True):
            path.append([w - 0.2 * s for w, s in zip(path[-1], slope if alone else mean, strict=True)])
    return Drift(paths, points, step=10 if alone else 100)


class Still(Widget):
    """What is saved beside a widget, by itself."""

    _esm = "export default { render({ model, el }) { el.innerHTML = model.get('html'); } }"
    _css = ""
    html = traitlets.Unicode().tag(sync=True)


def broadcast_run(**run) -> Schedule:
    """Like a recorded run of chapter 0: the 20 of rank 2 goes to rank 0, then to rank 1, over a 0 and a 10."""
    steps = [("copy", f"Rank 2 sends to rank {dst}.", [Transfer(2, dst, 0)]) for dst in (0, 1)]
    start = all_reduce.ring(ranks=3).start().cells["data"][:, :1].copy()
    start[:2] = empty_cells(2, 1)
    schedule = Schedule.from_steps("recorded", "run", 3, 1, steps, start={"data": start})
    given = {"start_values": [(2, "data", 0, "20")], "stale_values": [(0, "data", 0, "0"), (1, "data", 0, "10")]} | run
    for name, values in given.items():
        setattr(schedule, name, lambda values=values: values)
    schedule.values = lambda index: [(index, "data", 0, "20")]
    return schedule


def curves() -> Any:
    """Two networks beside each other."""
    networks = [presets.dgx_h100(4), presets.gpus_on_ethernet(4)]
    return cost_explorer("all_reduce", network=networks, algorithms=["ring", "recursive_doubling", "multi_ring"])


SMALL = ("laptop", "phone")  # what has no projector mode
LAPTOP = ("laptop",)


def cell(rank: int, place: int) -> tuple[str, ...]:
    """The keys that choose a cell: of a rank the place among the chunks of all its buffers."""
    return ("ArrowDown",) * (rank + 1) + ("]",) * (place + 1)


SCENES = {
    "player-ring": Scene(lambda: Player(all_reduce.ring(ranks=4), step=2)),
    "player-row": Scene(lambda: Player(all_reduce.naive(ranks=4), step=2, nbytes=64e6)),
    "player-before": Scene(lambda: Player(broadcast.binomial(ranks=8)), sizes=LAPTOP),
    "player-numbers": Scene(lambda: Player(all_reduce.ring(ranks=4), step=4), ("v", "v"), LAPTOP),
    "player-contributors": Scene(lambda: Player(all_reduce.ring(ranks=6), step=7), ("v",), LAPTOP),
    "player-following": Scene(
        lambda: Player(all_reduce.ring(ranks=4), step=3), ("ArrowDown", "ArrowDown", "]", "]"), LAPTOP
    ),
    "player-keys": Scene(lambda: Player(all_reduce.ring(ranks=3), step=1), ("?",), SMALL),
    "player-16": Scene(lambda: Player(all_reduce.ring(ranks=16), step=9)),
    "player-64": Scene(lambda: Player(all_reduce.ring(ranks=64), step=40), sizes=SMALL),
    "player-maximum": Scene(maximum, sizes=("laptop", "projector")),
    "player-tree": Scene(lambda: Player(all_reduce.tree(ranks=8), step=2)),
    "player-machines": Scene(lambda: Player(all_reduce.hierarchical(nodes=4, local=8), step=9)),
    "player-trace": Scene(lambda: Player(all_reduce.ring(ranks=4), step=3), (*cell(2, 3), "Enter"), SMALL),
    "player-trace-run": Scene(lambda: Player(made(), step=3), (*cell(2, 0), "Enter"), ("projector",)),
    "player-new": Scene(lambda: Player(made(), step=1), sizes=LAPTOP),
    "player-wrong": Scene(lambda: Player(all_reduce.ring(ranks=4), step=6, frame=(2, "data", 1)), sizes=("phone",)),
    "player-stuck": Scene(forgotten, sizes=("laptop", "projector")),
    "player-gate": Scene(lambda: Player(all_reduce.ring(ranks=4), predict=2, step=1)),
    "player-count": Scene(lambda: Player(all_reduce.ring(ranks=4), predict="messages"), sizes=LAPTOP),
    "player-room": Scene(
        lambda: Player(all_reduce.ring(ranks=4), predict="messages", answers=(6, 12, "2p(p-1)")),
        ("1", "2", "2", "3", "3", "3"),
        ("projector",),
    ),
    "question": Scene(question, ("1", "Enter")),
    "player-closed": Scene(closed, sizes=LAPTOP),
    "race": Scene(race, ("ArrowRight",) * 3),
    "timeline": Scene(timeline),
    "timeline-ddp": Scene(backward, sizes=LAPTOP),
    "zoo": Scene(lambda: Zoo(ranks=4)),
    "zoo-opened": Scene(lambda: Zoo(ranks=4, opened="all_to_all.pairwise", step=2), sizes=LAPTOP),
    "map": Scene(topology_map),
    "butterfly": Scene(butterflies),
    "butterfly-rank": Scene(lambda: Butterfly(all_reduce.recursive_doubling(16), step=2, chosen=3), sizes=LAPTOP),
    "square": Scene(lambda: Square(step=5)),
    "square-waste": Scene(lambda: Square("all_reduce", uses="own", step=3), sizes=SMALL),
    "mesh": Scene(mesh),
    "mesh-rank": Scene(lambda: Mesh(shape=(2, 2, 4), local=8, step=3, chosen=6), sizes=LAPTOP),
    "tokens": Scene(tokens),
    "tokens-pairs": Scene(pairs, sizes=LAPTOP),
    "log": Scene(log, sizes=SMALL),
    "log-finished": Scene(lambda: log(finished=True), sizes=SMALL),
    "slot-grid": Scene(slot_grid),
    "slot-grid-own": Scene(lambda: SlotGrid(pipeline.gpipe(4, 4), run=pipelined(), step=8), ("e",), LAPTOP),
    "memory": Scene(lambda: Memory("Llama 3 8B", ranks=4, gpu=80e9, step=12)),
    "memory-run": Scene(lambda: MemoryRun(held(), step=12), sizes=LAPTOP),
    "drift": Scene(lambda: drifting(alone=True)),
    "drift-one": Scene(lambda: drifting(alone=False), sizes=LAPTOP),
    "still-run": Scene(lambda: Still(html=Player(broadcast_run()).fallback()), sizes=LAPTOP),
    "still-buffers": Scene(lambda: Still(html=Player(made()).fallback()), sizes=LAPTOP),
    "still-stuck": Scene(lambda: Still(html=forgotten().fallback()), sizes=LAPTOP),
    "still-map": Scene(lambda: Still(html=small_map().fallback()), sizes=LAPTOP),
    "still-curves": Scene(lambda: Still(html=curves().fallback()), sizes=LAPTOP),
    "wait-for": Scene(lambda: WaitFor([(0, 2, "all_reduce", 0), (1, 2, "all_reduce", 0), (3, 1, "recv", 0)], 4)),
}
