"""cost: how many seconds a schedule takes on a network, step by step and link by link.

A step lasts as long as its busiest link and its busiest adder (`collectives.network` has the model); steps follow each
other, or overlap (`pipelined`). For one N (`cost`) or for many at once (`Curve`).
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collectives.network import Loads, Network, Topology, check_network
from collectives.pipelined import latencies
from collectives.traffic import Traffic, of_steps, scale

if TYPE_CHECKING:
    from collectives.schedule import Schedule


class LinkUse(NamedTuple):
    """`bytes` went over the link, which was busy for `seconds` of the whole."""

    bytes: float
    seconds: float


@dataclass(frozen=True)
class Cost:
    """Seconds of one call.

    step_seconds  one entry per step; they add up to `seconds`
    by_link       name of link -> LinkUse, for links that carry anything
    algbw         N / seconds, bytes per second
    busbw         algbw times the factor of nccl-tests (doc/PERFORMANCE.md): comparable with a link's bandwidth
    """

    seconds: float
    step_seconds: tuple[float, ...] = field(repr=False)
    algbw: float
    busbw: float
    _links: tuple[list[str], tuple[float, ...], list[float]] = field(repr=False, compare=False)  # names, bytes, seconds

    @cached_property
    def by_link(self) -> dict[str, LinkUse]:
        """Made when asked for: a large network has a hundred thousand links."""
        return {name: LinkUse(*use) for name, *use in zip(*self._links, strict=True) if any(use)}


def cost(schedule: "Schedule", nbytes: float | None, network: Network | Topology, pipelined: bool = False) -> Cost:
    """`nbytes` is the larger buffer of one rank, in bytes; `network` a Network or a Topology.

    `pipelined`: seconds are the latency of the longest chain of messages, and what the busiest link and the busiest
    adder have to do in all (`collectives.pipelined`); step_seconds is by how much each step prolongs that.
    """
    units = scale(schedule, nbytes)
    check_network(network, schedule.ranks)
    links = len(network.betas(schedule.ranks))
    carried, slopes, latency, added = np.zeros(links), np.zeros(links), np.zeros(links), np.zeros(schedule.ranks)
    steps: list[float] = []
    until: list[float] = []  # seconds of all bytes up to each step, if nobody waits
    known: dict[int, tuple[Traffic, Loads, np.ndarray, float]] = {}
    for traffic in of_steps(schedule):
        if id(traffic) not in known:
            loads = network.loads(traffic, schedule.ranks)
            adds = np.bincount(traffic.adder, traffic.reduced, schedule.ranks)
            longest = float((loads.seconds + loads.slopes * units.unit_bytes).max())
            known[id(traffic)] = (traffic, loads, adds, longest + network.gamma * units.unit_bytes * float(adds.max()))
        _, loads, adds, seconds = known[id(traffic)]
        steps.append(seconds)
        carried, slopes, latency, added = (
            carried + loads.units, slopes + loads.slopes, latency + loads.seconds, added + adds,
        )  # fmt: skip
        until.append(units.unit_bytes * (float(slopes.max()) + network.gamma * float(added.max())))
    if pipelined:
        ends = np.add(latencies(schedule, network), until)
        steps, latency = np.diff(ends, prepend=0.0).tolist(), np.zeros(links)
    busy = latency + slopes * units.unit_bytes
    uses = (network.names(schedule.ranks), units.of_ranks(carried.astype(np.int64)), busy.tolist())
    total = sum(steps)
    algbw = units.nbytes / total if total else 0.0
    return Cost(total, tuple(steps), algbw, algbw * bus_factor(schedule.collective, schedule.ranks), uses)


class Curve:
    """Seconds as a function of N for one schedule on one network: called with an array of bytes, it answers with one.

    A step is the maximum of straight lines, latency + slope * N, one per link. The schedule is gone through only once,
    and steps that look alike to the network are kept once, with how often they come. `pipelined` is one line.
    """

    def __init__(self, schedule: "Schedule", network: Network | Topology, pipelined: bool = False) -> None:
        check_network(network, schedule.ranks)
        self.schedule = schedule
        self._kinds: Counter[bytes] = Counter()
        known: dict[int, tuple[Traffic, bytes, np.ndarray, np.ndarray]] = {}
        slopes, added = np.zeros(len(network.betas(schedule.ranks))), np.zeros(schedule.ranks)
        for traffic in of_steps(schedule):
            if id(traffic) not in known:
                loads = network.loads(traffic, schedule.ranks)
                adds = np.bincount(traffic.adder, traffic.reduced, schedule.ranks)
                # A line as one complex number: sorted, and as bytes, lookalikes of different steps are equal.
                lines = np.unique(loads.seconds + 1j * (loads.slopes + network.gamma * adds.max()))
                known[id(traffic)] = (traffic, lines.tobytes(), loads.slopes, adds)
            _, packed, more, adds = known[id(traffic)]
            self._kinds[packed] += 1
            if pipelined:
                slopes, added = slopes + more, added + adds
        if pipelined:
            line = latencies(schedule, network)[-1] + 1j * (slopes.max() + network.gamma * added.max())
            self._kinds = Counter([np.array([line]).tobytes()])

    def __call__(self, sizes: ArrayLike) -> np.ndarray:
        unit_bytes = scale(self.schedule, np.asarray(sizes, float)).unit_bytes
        total = np.zeros_like(unit_bytes)
        for packed, times in self._kinds.items():
            lines = np.frombuffer(packed, complex)
            total += times * np.max([line.real + line.imag * unit_bytes for line in lines], axis=0)
        return total


def bus_factor(collective: str, ranks: int) -> float:
    """By what nccl-tests multiplies algbw, so that a perfect algorithm shows the speed of its links whatever p is."""
    share = (ranks - 1) / ranks
    shares = {
        "all_reduce": 2 * share,
        "reduce_scatter": share,
        "all_gather": share,
        "all_to_all": share,
        "gather": share,
        "scatter": share,
    }
    return shares.get(collective, 1.0)
