"""A network of `collectives` for ranks to run on: by name or given, as the plain table a rank needs, in words.

A rank knows neither Network nor Topology (it loads no `collectives`), so it gets the links that every pair of ranks
uses and what they cost. It answers with the bytes that it sent to each rank, which become a `Carried` here.

Left out: what a rank does with the table (rank/network.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from launch.shared.errors import UsageError

if TYPE_CHECKING:
    from collectives import Network, Topology
    from collectives.played import Carried

CARRIES = 2e9  # bytes per second that a laptop's memory moves between its processes, all of them together
OWN_LATENCY = 300e-6  # seconds that a message between two processes of a laptop takes in any case
LONGEST = 10  # seconds of latency; a network with more is a mistake in the unit
SLOWER = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**4, 10**5, 10**6)


def chosen(network, ranks: int) -> Network | Topology | None:
    """What `ranks` ranks are to run on: a name of collectives.presets.PLAYED, a Network, a Topology, or None.

    UsageError in a sentence for anything else, and for a topology that has no room for them.
    """
    if network is None:
        return None
    from collectives.network import check_network
    from collectives.played import bandwidths
    from collectives.presets import played
    from collectives.schedule import ScheduleError
    from collectives.units import duration

    try:
        found = played(network, ranks) if isinstance(network, str) else network
        check_network(found, ranks)
    except ScheduleError as error:
        raise UsageError(str(error)) from None
    if not bandwidths(found, ranks):
        raise UsageError("a network that ranks run on needs a beta above 0: 1 / bandwidth, in seconds per byte")
    alpha = max((way.alpha for way in ways(found, ranks)), default=0.0)
    if alpha > LONGEST:
        raise UsageError(
            f"each message on this network takes {duration(alpha)}: alpha is in seconds, so 100 µs is alpha=100e-6"
        )
    return found


def ways(network: Network | Topology, ranks: int) -> list:
    """What a message meets between any two ranks."""
    return [network.way(src, dst, ranks) for src in range(ranks) for dst in range(ranks) if src != dst]


def in_words(network: Network | Topology, ranks: int) -> str:
    """'ethernet, 10 times slower: 12.5 MB/s, 1 ms'."""
    from collectives import played

    return played.in_words(network, ranks)


def table(network, ranks: int) -> dict:
    """What rank/network.py needs, for JSON; all but the path of the file that the ranks share."""
    ways = [[network.way(src, dst, ranks) if src != dst else (0.0, []) for dst in range(ranks)] for src in range(ranks)]
    return {"betas": network.betas(ranks).tolist(), "ways": ways}


def too_fast(network, ranks: int) -> str:
    """What to run on instead where the machine cannot carry what is asked, or not so soon; '' where it can."""
    from collectives.played import bandwidths, rate
    from collectives.units import duration

    asked, said = max(bandwidths(network, ranks)), []
    if (need := asked * ranks / CARRIES) > 1:
        times = next((n for n in SLOWER if n >= need), 10 ** math.ceil(math.log10(need)))
        said.append(
            f"{rate(asked)} for each of {ranks} ranks is more than a laptop moves (about {rate(CARRIES)} in all): what "
            f"you measure is this machine; .slower({times}) of that network fits, and keeps who wins"
        )
    alpha = min((way.alpha for way in ways(network, ranks)), default=OWN_LATENCY)
    if alpha < OWN_LATENCY:
        said.append(
            f"your machine needs about {duration(OWN_LATENCY)} for a message, this network "
            f"{duration(alpha) if alpha else 'none'}: times of short messages will be too long"
        )
    return "\n".join(said)


def carried_by(ranks: int, told: dict[int, dict[int, int]]) -> Carried:
    """From the bytes that each rank says it has sent to each other rank."""
    from collectives.played import Carried

    return Carried(tuple(tuple(told.get(src, {}).get(dst, 0) for dst in range(ranks)) for src in range(ranks)))
