"""counts: steps, messages and bytes of a schedule, in total and per rank. Integers wherever they are exact."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collectives.traffic import Traffic, of_steps, per_rank, scale

if TYPE_CHECKING:
    from collectives.schedule import Schedule


@dataclass(frozen=True)
class Counts:
    """What one call of the collective sends.

    steps          steps in which at least one message is sent
    messages       transfers of a step between the same two ranks count as one; so do the copies that a switch makes
    total_bytes    sent by all ranks together
    busiest        bytes sent by the rank that sends most
    sent[r]        bytes sent by rank r
    received[r]    bytes received by rank r
    """

    steps: int
    messages: int
    total_bytes: int | float
    busiest: int | float
    sent: tuple[int | float, ...] = field(repr=False)  # one for each rank, maybe thousands
    received: tuple[int | float, ...] = field(repr=False)


def counts(schedule: "Schedule", nbytes: float | None = None) -> Counts:
    """`nbytes` is the larger buffer of one rank, in bytes (see `Schedule`)."""
    units = scale(schedule, nbytes)
    steps = messages = 0
    sent, received = np.zeros((2, schedule.ranks), np.int64)
    known: dict[
        int, tuple[Traffic, np.ndarray, np.ndarray, int]
    ] = {}  # lookalike steps share one Traffic, so they share its sums
    for traffic in of_steps(schedule):
        if id(traffic) not in known:
            leaving, arriving = traffic.leaving(), traffic.arriving()
            sent_by = per_rank(traffic.src[leaving], traffic.units[leaving], schedule.ranks)
            received_by = per_rank(traffic.dst[arriving], traffic.units[arriving], schedule.ranks)
            pairs = len(np.unique(traffic.src[leaving] * schedule.ranks + traffic.dst[leaving]))
            known[id(traffic)] = (traffic, sent_by, received_by, pairs)
        _, out, into, pairs = known[id(traffic)]
        steps += len(traffic.src) > 0
        messages += pairs
        sent += out
        received += into
    return Counts(
        steps=steps,
        messages=messages,
        total_bytes=units.to_bytes(int(sent.sum())),
        busiest=units.to_bytes(int(sent.max())),
        sent=units.of_ranks(sent),
        received=units.of_ranks(received),
    )
