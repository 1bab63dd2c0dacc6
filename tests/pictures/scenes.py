"""What is photographed: every widget in the states that a room sees, each with data that never changes.

A scene is a widget and the keys that are pressed in it. Nothing here comes from a real run: measured times would make
another picture every day. The main states are photographed at every size, the others at one: the repository keeps all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

from collectives import Schedule, all_reduce, broadcast, presets
from collectives.timed import Match, Timed
from widgets import Player, Race, RankLog, Timeline, TopologyMap, WaitFor, Zoo
from widgets.base import Widget


@dataclass(frozen=True)
class Scene:
    """A widget, the keys pressed on its scrubber, and the sizes that are kept."""

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


def maximum() -> Player:
    """A ring like that of a run whose ranks take the maximum where the textbook's ring adds."""
    stays = "Of what arrives and what is there the maximum stays."
    steps = [(step.phase, stays, step.transfers) for step in all_reduce.ring(ranks=4).steps]
    ring = Schedule.from_steps("all_reduce", "ring", 4, 4, steps)
    ring.ways = lambda index: ["max" if t.op == "reduce" else "" for t in ring.steps[index].transfers]
    return Player(ring, step=2)


def race() -> Race:
    return Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6)


def topology_map() -> TopologyMap:
    flat, nested = all_reduce.ring(ranks=32), all_reduce.hierarchical(nodes=4, local=8)
    return TopologyMap(flat, nested, topology=presets.dgx_h100(), nbytes=1e9, step=5)


SMALL = ("laptop", "phone")  # what has no projector mode
LAPTOP = ("laptop",)

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
    "player-gate": Scene(lambda: Player(all_reduce.ring(ranks=4), predict=2, step=1)),
    "player-count": Scene(lambda: Player(all_reduce.ring(ranks=4), predict="messages"), sizes=LAPTOP),
    "race": Scene(race, ("ArrowRight",) * 3),
    "timeline": Scene(timeline),
    "zoo": Scene(lambda: Zoo(ranks=4)),
    "zoo-opened": Scene(lambda: Zoo(ranks=4, opened="all_to_all.pairwise", step=2), sizes=LAPTOP),
    "map": Scene(topology_map),
    "log": Scene(log, sizes=SMALL),
    "log-finished": Scene(lambda: log(finished=True), sizes=SMALL),
    "wait-for": Scene(lambda: WaitFor([(0, 2, "all_reduce"), (1, 2, "all_reduce"), (3, 1, "recv")], 4), sizes=SMALL),
}
