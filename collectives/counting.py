"""counts: steps, messages and bytes of a schedule, in total and per rank. Integers wherever they are exact."""

from dataclasses import dataclass, field

import numpy as np

from collectives.traffic import of_steps, per_rank, scale


@dataclass(frozen=True)
class Counts:
    """What one call of the collective sends.

    steps          steps in which at least one message is sent
    messages       all transfers of a step between the same two ranks are one message
    total_bytes    sent by all ranks together
    busiest        bytes sent by the rank that sends most
    sent[r]        bytes sent by rank r
    received[r]    bytes received by rank r
    """

    steps: int
    messages: int
    total_bytes: int | float
    busiest: int | float
    sent: tuple[int | float, ...] = field(repr=False)  # may be thousands
    received: tuple[int | float, ...] = field(repr=False)


def counts(schedule, nbytes=None) -> Counts:
    """`nbytes` is the larger buffer of one rank, in bytes (see `Schedule`)."""
    units = scale(schedule, nbytes)
    steps = messages = 0
    sent, received = np.zeros((2, schedule.ranks), np.int64)
    known = {}  # lookalike steps share one Traffic, so they share its sums
    for traffic in of_steps(schedule):
        if id(traffic) not in known:
            sums = (per_rank(rank, traffic.units, schedule.ranks) for rank in (traffic.src, traffic.dst))
            known[id(traffic)] = (traffic, *sums)
        _, out, into = known[id(traffic)]
        steps += len(traffic.src) > 0
        messages += len(traffic.src)
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
