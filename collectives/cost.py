"""cost: how many seconds a schedule takes on a network, step by step and link by link.

A step lasts as long as its busiest link and its busiest adder (`collectives.network` has the model); steps follow each
other. For one N (`cost`) or for many at once (`Curve`).
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from collectives.network import check_network
from collectives.traffic import Traffic, of_steps, per_rank, scale


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
    _links: tuple = field(repr=False, compare=False)  # names, bytes, seconds

    @cached_property
    def by_link(self) -> dict[str, LinkUse]:
        """Made when asked for: a large network has a hundred thousand links."""
        return {name: LinkUse(*use) for name, *use in zip(*self._links, strict=True) if any(use)}


def cost(schedule, nbytes, network) -> Cost:
    """`nbytes` is the larger buffer of one rank, in bytes; `network` a Network or a Topology."""
    units = scale(schedule, nbytes)
    check_network(network, schedule.ranks)
    betas = network.betas(schedule.ranks) * units.unit_bytes
    carried, busy = np.zeros((2, len(betas)))
    steps, known = [], {}
    for traffic in of_steps(schedule):
        if id(traffic) not in known:
            loads = network.loads(traffic, schedule.ranks)
            use = loads.seconds + loads.units * betas
            adding = network.gamma * units.unit_bytes * _most_added(traffic, schedule.ranks)
            known[id(traffic)] = (traffic, loads, use, float(use.max()) + adding)
        _, loads, use, seconds = known[id(traffic)]
        steps.append(seconds)
        carried += loads.units
        busy += use
    links = (network.names(schedule.ranks), units.of_ranks(carried.astype(np.int64)), busy.tolist())
    total = sum(steps)
    algbw = units.nbytes / total if total else 0.0
    return Cost(total, tuple(steps), algbw, algbw * bus_factor(schedule.collective, schedule.ranks), links)


class Curve:
    """Seconds as a function of N for one schedule on one network: called with an array of bytes, it answers with one.

    A step is the maximum of straight lines, latency + slope * N, one per link. The schedule is gone through only once,
    and steps that look alike to the network are kept once, with how often they come.
    """

    def __init__(self, schedule, network):
        check_network(network, schedule.ranks)
        self.schedule = schedule
        betas = network.betas(schedule.ranks)
        self._kinds, known = Counter(), {}
        for traffic in of_steps(schedule):
            if id(traffic) not in known:
                loads = network.loads(traffic, schedule.ranks)
                slopes = loads.units * betas + network.gamma * _most_added(traffic, schedule.ranks)
                # A line as one complex number: sorted, and as bytes, lookalikes of different steps are equal.
                known[id(traffic)] = (traffic, np.unique(loads.seconds + 1j * slopes).tobytes())
            self._kinds[known[id(traffic)][1]] += 1

    def __call__(self, sizes) -> np.ndarray:
        unit_bytes = scale(self.schedule, np.asarray(sizes, float)).unit_bytes
        total = np.zeros_like(unit_bytes)
        for lines, times in self._kinds.items():
            lines = np.frombuffer(lines, complex)
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


def _most_added(traffic: Traffic, ranks: int) -> int:
    return int(per_rank(traffic.adder, traffic.reduced, ranks).max()) if len(traffic.adder) else 0
