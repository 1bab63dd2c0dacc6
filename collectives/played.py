"""The network that a run was played on: in words, in a file, and what its links carried.

Left out: playing it (launch), networks themselves (`collectives.network`), and a topology's switches in a file.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from collectives.network import Hop, Network, Topology
from collectives.units import duration, rate


class Carried(NamedTuple):
    """What ranks sent on a network that was played.

    bytes  [src][dst]: the bytes of messages, and of the steps that the library takes inside a built-in
    """

    bytes: tuple[tuple[int, ...], ...]

    def on_links(self, network: Network | Topology) -> list[int]:
        """Bytes on every link, in the order of `network.names`."""
        ranks = len(self.bytes)
        found = [0] * len(network.names(ranks))
        for src, row in enumerate(self.bytes):
            for dst, nbytes in enumerate(row):
                if nbytes:
                    for link, _ in network.way(src, dst, ranks).links:
                        found[link] += nbytes
        return found

    def by_link(self, network: Network | Topology) -> dict[str, int]:
        """Name of link -> bytes, for links that carried any."""
        names = network.names(len(self.bytes))
        return {name: nbytes for name, nbytes in zip(names, self.on_links(network), strict=True) if nbytes}

    def out_of_nics(self, network: Network | Topology) -> dict[str, float]:
        """What each NIC sent, in MB to a hundredth; less than that is left out (the library's own few words)."""
        sent = {name.removesuffix(" out"): round(nbytes / 1e6, 2) for name, nbytes in self.by_link(network).items()}
        return {nic: amount for nic, amount in sent.items() if nic.startswith("nic ") and nic[-3:] != " in" and amount}


def bandwidths(network: Network | Topology, ranks: int) -> list[float]:
    """The different bandwidths of its links, in bytes per second, the fastest first."""
    return sorted({1 / beta for beta in network.betas(ranks).tolist() if beta}, reverse=True)


def in_words(network: Network | Topology, ranks: int) -> str:
    """'ethernet, 10 times slower: 12.5 MB/s, 1 ms'."""
    latencies = {network.way(src, dst, ranks).alpha for src in range(ranks) for dst in range(ranks) if src != dst}
    rates = " and ".join(rate(each) for each in bandwidths(network, ranks))
    times = " and ".join(_in_prose(alpha) for alpha in sorted(latencies) if alpha) or "no latency"
    return f"{network.name or 'a network'}: {rates}, {times}"


def _in_prose(seconds: float) -> str:
    return duration(seconds).replace(" us", " microseconds")


def described(network: Network | Topology, ranks: int) -> dict[str, Any]:
    """The network for a file, as far as `ranks` ranks use it: plain numbers and texts."""
    if isinstance(network, Network):
        return {"alpha": network.alpha, "beta": network.beta, "gamma": network.gamma, "name": network.name}
    room = range(network.ranks)
    ways = [[network.way(src, dst, ranks) if src != dst else (0.0, []) for dst in room] for src in room]
    return {
        "name": network.name,
        "ranks": network.ranks,
        "links": list(zip(network.names(ranks), network.betas(ranks).tolist(), strict=True)),
        "ways": ways,
        "gamma": network.gamma,
        "local": network.local,
        "kind": network.kind,
    }


def rebuilt(kept: dict[str, Any]) -> Network | Topology:
    """The network that `described` was given. ValueError, KeyError or TypeError if `described` did not write this."""
    if "ways" not in kept:
        name = None if kept["name"] is None else str(kept["name"])
        return Network(float(kept["alpha"]), float(kept["beta"]), float(kept["gamma"]), name=name)
    ranks, links = int(kept["ranks"]), [(str(name), float(beta)) for name, beta in kept["links"]]
    ways = [
        [(float(alpha), [(int(link), int(end)) for link, end in hops]) for alpha, hops in row] for row in kept["ways"]
    ]
    if len(ways) != ranks or any(len(row) != ranks for row in ways):
        raise ValueError(f"the ways between {ranks} ranks are not all there")
    if any(not (0 <= link < len(links) and 0 <= end < ranks) for row in ways for _, way in row for link, end in way):
        raise ValueError("a way leads over a link that is not there")
    if kept["kind"] not in ("machines", "ring", "shared", "torus", None):
        raise ValueError(f"{kept['kind']!r:.40} is no kind of topology")

    def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
        paths = [ways[s][d][1] for s, d in zip(src.tolist(), dst.tolist(), strict=True)]
        for hop in range(max(map(len, paths), default=0)):
            longer = [i for i, path in enumerate(paths) if len(path) > hop]
            yield Hop(np.array(longer), *(np.array([paths[i][hop][part] for i in longer]) for part in (0, 1)))

    def alpha(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        return np.array([ways[s][d][0] for s, d in zip(src.tolist(), dst.tolist(), strict=True)])

    local = None if kept["local"] is None else int(kept["local"])
    return Topology(str(kept["name"]), ranks, links, hops, alpha, float(kept["gamma"]), local, kept["kind"])
