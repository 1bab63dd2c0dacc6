"""Machines and the links between them as a still picture, for wherever no browser runs the TopologyMap.

It is the picture of js/wiring.js after the last step: machines in two rows with the network between them, each wire as
thick as what it carried (dashed: nothing), the busiest in orange with a light core. Above it is what the live title and
the line below the live picture say: how many links are the bottleneck, and which.

Left out: topologies that are no machines, of which a table names the busiest links (topology_map.py); steps.
"""

import textwrap
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from collectives import Topology
from collectives.units import duration, size
from widgets import _still
from widgets._drawn import STYLE, WIDE, words

TILE, BAR, WIRE, PAD = 28, 26, 42, 10  # pixels: height of a GPU, of a switch, length of a wire, between parts
THICKEST, THINNEST = 11, 1.5  # of a wire that carries anything
ALIKE = 1e-9  # relative: links closer than this are equally busy, as in js/loads.js
LINE = 80  # letters of the headline
ROOM = 100  # pixels that an amount beside a wire takes
FEW = 16  # busiest links that have their amounts beside them
SLOW = "#d55e00"


def spelled(topology: Topology) -> list[str]:
    """The names of its links, with what a NIC is."""
    return [name.replace("nic of", "NIC (network card) of") for name in topology.names(topology.ranks)]


def busiest(seconds: np.ndarray) -> list[int]:
    """The links that are busy for the longest time; none where nothing was sent."""
    most = max(seconds)
    return [] if not most else [link for link, busy in enumerate(seconds) if busy >= most * (1 - ALIKE)]


def bottleneck(seconds: np.ndarray) -> str:
    """ ": 8 of 64 links are the bottleneck", as in the live title."""
    top, used = len(busiest(seconds)), int(np.count_nonzero(seconds))
    if not top:
        return ""
    links = f"{used} link{'s' * (used != 1)}"
    return f": all {links} are equally busy" if top == used else f": {top} of {links} {_be(top)} the bottleneck"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def told(topology: Topology, use: np.ndarray) -> list[str]:
    """Two lines: which link is the busiest; what went over all of them inside machines and between them."""
    carried, seconds = use
    top = busiest(seconds)
    if not top:
        return ["Nothing was sent."]
    name = spelled(topology)[top[0]]
    more = f", and {len(top) - 1} more like it" if len(top) > 1 else ""
    first = f"Busiest link: {name}, {_size(carried[top[0]])}, busy for {duration(seconds[top[0]])}{more}."
    ranks = topology.ranks
    if topology.local in (None, ranks):
        return [first]
    nics = carried[2 * ranks : ranks + len(carried) // 2]  # those that lead out
    return [first, f"Inside machines {_size(sum(carried[:ranks]))}, between machines {_size(sum(nics))}."]


def _size(nbytes: float) -> str:
    """Half of a last digit counts as a whole, as in the live picture."""
    return size(nbytes * (1 + 1e-12))


def svg(topology: Topology, runs: Sequence[tuple[str, list[str], np.ndarray]]) -> str:
    """One picture below the other, to one scale: of each run its headline, the lines about it, and the bytes and busy
    seconds of every link."""
    most = max(max(use[0]) for _, _, use in runs) or 1
    parts, y = [], 0
    for headline, said, use in runs:
        lines = [(line, "") for line in textwrap.wrap(headline, LINE)]
        for line, kind in lines + [(line, "rd-small rd-light") for line in said]:
            parts.append(words(line, 2, y + 18, kind))
            y += 18
        drawn, tall = _picture(topology, use, most)
        parts.append(f'<g transform="translate(0 {y + 8})">{drawn}</g>')
        y += tall + 28
    style = f"{STYLE}.core{{fill:none;stroke:#fff}}.hot{{fill:none;stroke:{SLOW}}}.rd-hot{{fill:{SLOW}}}"
    return _still.sheet(WIDE, y - 10, style, parts)


def _picture(topology: Topology, use: np.ndarray, most: float) -> tuple[str, int]:
    """The machines of js/wiring.js, and how tall they are."""
    ranks, gpus = topology.ranks, topology.local or topology.ranks
    count, cards = ranks // gpus, len(use[0]) // 2 - ranks
    several, own = count > 1, cards == ranks  # own: every GPU has a NIC of its own
    columns = -(-count // 2) if several else 1
    inside = 2 * PAD + BAR + WIRE + TILE
    middle = inside + WIRE if several else inside  # where the network begins
    wide = (WIDE - (columns - 1) * PAD) / columns
    pitch = (wide - 2 * PAD) / gpus
    boxes, wires, beside = [], defaultdict(list), []
    top = busiest(use[1])

    def wire(link: int, x: float, start: float, end: float, near: float) -> None:
        share = use[0][link] / most
        thick = THINNEST + max(0, min(THICKEST, 2 * near) - THINNEST) * share if share else 0
        kind = "hot" if link in top else "rd-line" if thick else "rd-own"
        wires[kind, f"{thick:.2g}"].append(f"M{x:.4g} {start:g}V{end:g}")

    for machine in range(count):
        under = machine >= columns  # below the network, upside down
        left = machine % columns * (wide + PAD)

        def at(down: float, under=under) -> float:
            return 2 * middle + BAR - down if under else down

        def box(x: float, down: float, w: float, h: float, kind: str, name: str, at=at) -> None:
            y = min(at(down), at(down + h))
            boxes.append(f'<rect class="{kind}" x="{x:.4g}" y="{y:g}" width="{w:.4g}" height="{h}" rx="4"/>')
            if name:
                boxes.append(words(name, round(x + w / 2), y + h / 2 + 4, "rd-mid rd-small"))

        def pair(out: int, into: int, x: float, near: float, start: float, end: float, room: float, at=at) -> None:
            wire(out, x - near, at(start), at(end), near)
            wire(into, x + near, at(end), at(start), near)
            arrows = "\u2193\u2191" if at(start) < at(end) else "\u2191\u2193"
            said = [
                f"{way} {_size(use[0][link])}" for link, way in zip((out, into), arrows, strict=True) if link in top
            ]
            if len(top) <= FEW and room >= ROOM:
                height = (at(start) + at(end)) / 2 + 5 - 8 * (len(said) - 1)
                beside.extend(
                    words(text, x + near + 9, height + 16 * i, "rd-small rd-hot") for i, text in enumerate(said)
                )

        near = min(pitch * 0.16, 9)  # from the middle of a GPU to a wire
        box(left, 0, wide, inside, "rd-empty", "")
        box(left + PAD, PAD, wide - 2 * PAD, BAR, "rd-box", f"machine {machine}" if several else "switch")
        low = PAD + BAR + WIRE
        for gpu in range(gpus):
            rank, x, w = machine * gpus + gpu, left + PAD + (gpu + 0.5) * pitch, min(pitch * 0.84, 60)
            box(x - w / 2, low, w, TILE, "rd-box", str(rank))
            pair(rank, ranks + rank, x, near, low, PAD + BAR, pitch)
            if several and own:
                pair(2 * ranks + rank, 3 * ranks + rank, x, near, low + TILE, middle, pitch)
        if several and not own:
            card = 2 * ranks + machine
            pair(card, card + cards, left + wide / 2, near, inside, middle, wide)
    if several:
        boxes.append(f'<rect class="rd-box" y="{middle}" width="{WIDE}" height="{BAR}" rx="4"/>')
        boxes.append(words("network between the machines", WIDE / 2, middle + BAR / 2 + 4, "rd-mid rd-small"))
    lines = []
    for (kind, thick), paths in wires.items():
        path, width = "".join(paths), "" if kind == "rd-own" else f' stroke-width="{thick}"'
        lines.append(f'<path class="{kind}"{width} d="{path}"/>')
        if kind == "hot":
            lines.append(f'<path class="core" stroke-width="{float(thick) / 4:.2g}" d="{path}"/>')
    return "".join([*boxes, *lines, *beside]), 2 * middle + BAR if several else middle
