"""What a plan asks you to draw on the board, stroke by stroke: a row of small pictures in the notes, one on its slide.

A drawing is a few steps; each has what you say and what you draw. Where a picture is of a schedule, a network or a
curve, its strokes are computed from that. Lengths are in units of a box's height.

Chapter 13 shows `CUTS` itself. Left out: what a plan asks you to write, and the other pictures of the chapters.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape
from math import hypot

from collectives import all_reduce, broadcast, presets

UNIT = 40  # pixels

HUES = ("#f5d999", "#bbe1f6", "#99d8c7", "#f9f4b3")  # pale, so dark letters read on them
STYLE = (
    "text{font:600 14px system-ui,sans-serif;fill:#787878}rect,polyline{fill:none;stroke:#787878;stroke-width:1.6}"
    + "".join(f".rank{rank}{{fill:{hue}}}.rank{rank}+text{{fill:#14171a}}" for rank, hue in enumerate(HUES))
)
"""Of a drawing in a chapter: a grey that reads on light and dark. The notes and the slides have board.css."""

TREE = ((4, 0), (2, 4), (6, 4), (1, 2), (3, 2), (5, 6), (7, 6))
"""On 8 ranks, each with the rank above it: the first of the two trees of chapter 7."""


@dataclass(frozen=True)
class Drawing:
    """For the section `heading`; `words` are the plan's that ask for it, `steps` what to say and the SVG of it."""

    heading: str
    words: tuple[str, ...]
    size: tuple[float, float]
    steps: tuple[tuple[str, str], ...]

    def svg(self, upto: int, after: str = "") -> str:
        """The picture after that many steps: the last in colour or, given `after`, all but the first of that class."""
        width, height = (UNIT * length for length in self.size)
        groups = [
            f'<g class="{"new" if number == upto and not after else ""} {after if number > 1 else ""}">{marks}</g>'
            for number, (_, marks) in enumerate(self.steps[:upto], start=1)
        ]
        label = escape("; ".join(said for said, _ in self.steps[:upto]))
        view = f'viewBox="0 0 {width:g} {height:g}"'
        return f'<svg class="board" {view} role="img" aria-label="{label}">{"".join(groups)}</svg>'

    def until(self, step: int) -> "Drawing":
        """The drawing before the steps that come later."""
        return replace(self, steps=self.steps[:step])

    def __repr__(self) -> str:
        return f"Drawing({'; '.join(said for said, _ in self.steps)})"

    def _repr_html_(self) -> str:
        """In a chapter: a still picture, each rank's pieces in its colour."""
        width, height = (UNIT * length for length in self.size)
        marks = "".join(marks for _, marks in self.steps)
        size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{marks}</svg>'
        source = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
        return f'<img alt="{escape(repr(self))}" style="max-width:100%" src="{source}">'


def text(x: float, y: float, words: object, anchor: str = "middle") -> str:
    return f'<text x="{UNIT * x:g}" y="{UNIT * y + 5:g}" text-anchor="{anchor}">{escape(str(words))}</text>'


def box(x: float, y: float, words: object = "", width: float = 0.9, height: float = 0.8, kind: str = "") -> str:
    """A box around its middle."""
    left, top = UNIT * (x - width / 2), UNIT * (y - height / 2)
    sides = f'width="{UNIT * width:g}" height="{UNIT * height:g}"'
    return f'<rect class="{kind}" x="{left:g}" y="{top:g}" {sides} rx="4"/>' + (
        text(x, y, words) if words != "" else ""
    )


def ring(x: float, y: float, width: float, height: float) -> str:
    """What is circled."""
    return box(x, y, "", width, height, "dashed")


def path(points: Iterable[tuple[float, float]], kind: str = "") -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{UNIT * x:g},{UNIT * y:g}" for x, y in points)}"/>'


def arrow(x: float, y: float, to_x: float, to_y: float, up: float = 0.0, head: bool = True) -> str:
    """Bent upwards by so much in its middle."""
    middle = (y + to_y) / 2 - 2 * up
    ways = [step / 12 for step in range(13)]
    points = [(x + t * (to_x - x), (1 - t) ** 2 * y + 2 * t * (1 - t) * middle + t * t * to_y) for t in ways]
    if not head:
        return path(points)
    away = (to_x - points[-3][0], to_y - points[-3][1])
    along = tuple(part / hypot(*away) * 0.2 for part in away)
    back = to_x - along[0], to_y - along[1]
    sides = [(back[0] - along[1] / 2, back[1] + along[0] / 2), (back[0] + along[1] / 2, back[1] - along[0] / 2)]
    return path(points) + path([sides[0], (to_x, to_y), sides[1]])


def grid(words: Callable[[int, int], object], rows: int, columns: int, x: float, y: float, wide: float = 1.2) -> str:
    """Boxes in rows and columns; the first has its middle at (x, y)."""
    return "".join(box(x + wide * c, y + r, words(r, c)) for r in range(rows) for c in range(columns))


def _parabola() -> Drawing:
    def place(x: float, y: float) -> tuple[float, float]:
        return 0.8 + 2.5 * x, 4.5 - y

    axes = path([place(0, 4.2), place(0, 0), place(2.2, 0)])
    axes += "".join(text(*place(x, -0.4), x) for x in range(3)) + text(*place(-0.15, 4), 4)
    halves = "".join(text(*place(rank + 0.4, 3.7), f"rank {rank}") for rank in range(2))
    return Drawing(
        "A model that drifts apart",
        ("Draw x² from 0 to 2",),
        (6.6, 5.2),
        (
            ("The axes: x from 0 to 2, x² up to 4", axes),
            ("The curve: through 0, 1 and 4", path([place(x / 10, x * x / 100) for x in range(21)])),
            (
                "The cut at 1: rank 0 sees the left half, rank 1 the right one",
                path([place(1, 0), place(1, 4)], "dashed") + halves,
            ),
        ),
    )


def _memories() -> Drawing:
    boxes = "".join(
        box(3.6 + 1.6 * rank, 1.2, "", 1.4, 1.2) + text(3.6 + 1.6 * rank, 0.3, f"rank {rank}") for rank in range(4)
    )
    values = "".join(text(3.6 + 1.6 * rank, 1.2, f"x = {rank}") for rank in range(4)) + text(1.2, 1.2, "no x")
    return Drawing(
        "Four memories",
        ("draw five boxes on the board",),
        (9.4, 2),
        (
            ("The notebook", box(1.2, 1.2, "", 1.8, 1.2) + text(1.2, 0.3, "notebook")),
            ("Four ranks, each with a memory of its own", boxes),
            ("After the hands: an x in each rank, none in the notebook", values),
        ),
    )


def _curves() -> Drawing:
    """Lines for the networks that the chapter's cells play, of two ranks."""

    def place(megabytes: float, milliseconds: float) -> tuple[float, float]:
        return 1 + 3.2 * megabytes, 4.3 - milliseconds / 100

    steps = [("The axes: a message's bytes, and its time", path([place(0, 400), place(0, 0), place(1.7, 0)]))]
    steps[0] = (steps[0][0], steps[0][1] + text(*place(1.6, -45), "1.6 MB") + text(0.5, 0.4, "ms"))
    for name in ("wifi", "ethernet", "infiniband"):
        network = presets.played(name, 2)
        alpha, end = (1e3 * broadcast.flat(2).cost(nbytes=n, network=network).seconds for n in (4, 1_600_000))
        line = path([place(0, alpha), place(1.6, end)]) + text(*place(1.65, end), f"{name}, {end:.0f} ms", "start")
        steps.append((f"{name}: begins at α, {alpha:.0f} ms, and rises by β a byte", line))
    return Drawing("Measure it: there and back", ("draw the expected curves",), (9.6, 5.2), tuple(steps))


def _distances() -> Drawing:
    """From the schedule of halving and doubling, nearest partner first."""
    steps = [("Eight ranks", "".join(box(0.8 + rank, 3, rank, 0.7) for rank in range(8)))]
    steps.append(("The slow cable, between 3 and 4", path([(4.3, 0.3), (4.3, 3.9)], "dashed")))
    for step in all_reduce.halving_doubling(8).steps[:3]:
        pairs = sorted({(each.src, each.dst) for each in step.transfers if each.src < each.dst})
        distance = pairs[0][1] - pairs[0][0]
        arcs = "".join(arrow(0.8 + a, 2.55, 0.8 + b, 2.55, 0.25 + 0.45 * distance, head=False) for a, b in pairs)
        crossing = sum(a < 4 <= b for a, b in pairs)
        steps.append((f"Distance {distance}: {crossing or 'no'} pairs cross the cable", arcs))
    return Drawing("Which order, and why?", ("Draw eight ranks",), (8.6, 4), tuple(steps))


def _extra_ranks() -> Drawing:
    """From the schedule of recursive doubling on 6 ranks; time runs down."""
    steps = all_reduce.recursive_doubling(6).steps
    lines = "".join(box(0.8 + 1.2 * rank, 0.6, rank, 0.8, 0.7) for rank in range(6))
    lines += "".join(path([(0.8 + 1.2 * rank, 0.95), (0.8 + 1.2 * rank, 5.3)], "faint") for rank in range(6))

    def moves(number: int) -> str:
        sent = sorted({(each.src, each.dst) for each in steps[number].transfers}, key=lambda pair: (min(pair), pair))
        down = {pair: 1.5 + number + 0.2 * place for place, pair in enumerate(sent)}
        return "".join(arrow(0.8 + 1.2 * a, y, 0.8 + 1.2 * b, y) for (a, b), y in down.items())

    return Drawing(
        "Myth check",
        ("Draw the two extra ranks",),
        (7.6, 5.4),
        (
            ("Six ranks; four would be a power of two", lines),
            ("The extra ranks, 1 and 3, hand over", moves(0)),
            ("They wait while the other four double", moves(1) + moves(2)),
            ("They get it back: 4 steps, and 8 ranks need 3", moves(3)),
        ),
    )


def _two_trees() -> Drawing:
    places = {0: (2.5, 0.5), 4: (2.5, 1.6), 2: (1.4, 2.7), 6: (3.6, 2.7)} | {
        r: (0.3 + r * 0.55 + 0.3, 3.8) for r in (1, 3, 5, 7)
    }

    def tree(right: float, name: Callable[[int], int]) -> str:
        lines = "".join(
            path([(places[a][0] + right, places[a][1] - 0.3), (places[b][0] + right, places[b][1] + 0.3)])
            for a, b in TREE
        )
        return lines + "".join(box(x + right, y, name(rank), 0.6, 0.6) for rank, (x, y) in places.items())

    return Drawing(
        "Two trees, cut into chunks",
        ("Find one rank in both trees on the board",),
        (10.4, 4.3),
        (
            ("The first tree", tree(0, int)),
            ("The second one: 7 minus each number", tree(5.4, lambda rank: 7 - rank)),
            (
                "Rank 2 in both: inner here, leaf there",
                ring(1.4, 2.7, 0.9, 0.9) + ring(places[5][0] + 5.4, 3.8, 0.9, 0.9),
            ),
        ),
    )


def _mesh() -> Drawing:
    names = text(3, 0.4, "tensor") + text(0.5, 1.8, "data")
    told = "".join(text(4.5, 1.3 + row, f"sequences {8 * row} to {8 * row + 7}", "start") for row in range(2))
    return Drawing(
        "Two by two",
        ("Draw the mesh",),
        (8, 3.2),
        (
            ("Four ranks", grid(lambda r, c: 2 * r + c, 2, 2, 2.4, 1.3)),
            ("The two dimensions", names),
            (
                "A row is one GPT in two halves, on its own sequences",
                ring(3, 1.3, 2.4, 0.94) + ring(3, 2.3, 2.4, 0.94) + told,
            ),
        ),
    )


def _square() -> Drawing:
    return Drawing(
        "Two axes",
        ("Draw the 2 x 2 square, one axis down",),
        (5, 3.3),
        (
            ("Four devices", grid(lambda r, c: 2 * r + c, 2, 2, 2.2, 1.4)),
            ("Down is data, across is model", text(2.8, 0.4, "model →") + text(0.7, 1.9, "data ↓")),
            ("After `xla_axis`: along data, {0,2} and {1,3}", ring(2.2, 1.9, 1.1, 2.1) + ring(3.4, 1.9, 1.1, 2.1)),
        ),
    )


def _two_ways_to_number() -> Drawing:
    def boxes(y: float, ranks: tuple[int, ...], said: str) -> str:
        return (
            box(2, y, "", 2.8, 1.3)
            + box(6, y, "", 2.8, 1.3)
            + text(0.1, y - 1.1, said, "start")
            + "".join(box(x, y, rank, 0.7, 0.7) for x, rank in zip(AT, ranks, strict=True))
        )

    def hops(y: float, ranks: tuple[int, ...]) -> str:
        at = {rank: x for x, rank in zip(AT, ranks, strict=True)}
        ends = [(at[rank], at[(rank + 1) % 4]) for rank in range(4)]
        return "".join(
            arrow(a, y - 0.4, b, y - 0.4, 0.3 + 0.08 * (b - a))
            if a < b
            else arrow(a, y + 0.4, b, y + 0.4, -0.3 - 0.05 * (a - b))
            for a, b in ends
        )

    AT, in_a_row, in_turn = (1.3, 2.7, 5.3, 6.7), (0, 1, 2, 3), (0, 2, 1, 3)
    return Drawing(
        "Across the slow wire",
        ("Draw two boxes and four ranks", "draw the ring 0, 1, 2, 3", "Draw it: there are two"),
        (8, 7.4),
        (
            ("Two machines, numbered one after the other", boxes(1.7, in_a_row, "one after the other")),
            ("The ring: one hop out of each machine", hops(1.7, in_a_row)),
            ("The same machines, dealt out in turn", boxes(5.4, in_turn, "in turn")),
            ("The ring: two hops out of each", hops(5.4, in_turn)),
        ),
    )


def _table() -> Drawing:
    column = [10 * rank + 2 for rank in range(4)]
    return Drawing(
        "Reduce-scatter",
        ("Draw the 4 x 4 table",),
        (7.4, 5.4),
        (
            (
                "A row for each rank: number k of rank r is 10 r + k",
                grid(lambda r, k: 10 * r + k, 4, 4, 2.3, 0.7)
                + "".join(text(0.9, 0.7 + r, f"rank {r}") for r in range(4)),
            ),
            ("Rank 2 gets number 2 of each: down the column", ring(4.7, 2.2, 1.1, 4.1)),
            (f"The sum: {sum(column)}", text(4.7, 4.8, f"{' + '.join(map(str, column))} = {sum(column)}")),
        ),
    )


def _transpose() -> Drawing:
    def pieces(mirrored: bool, x: float) -> str:
        return grid(lambda r, c: "abcd"[c if mirrored else r] + str(r if mirrored else c), 4, 4, x, 0.7, 1)

    return Drawing(
        "A transpose",
        ("on a 4 x 4 grid on the board",),
        (14.4, 5),
        (
            ("A row for each rank: a to d are its letters, 0 to 3 whom they are for", pieces(False, 0.7)),
            ("The diagonal stays", path([(0.3, 0.3), (4.1, 4.1)], "dashed")),
            ("After one all_to_all: mirrored", pieces(True, 5.7)),
            ("After a second one: as before", pieces(False, 10.7)),
        ),
    )


def _groups() -> Drawing:
    return Drawing(
        "A mesh",
        ("2 x 4 on the board",),
        (7.3, 3.3),
        (
            ("Two machines of four", grid(lambda r, c: 4 * r + c, 2, 4, 2.8, 1.3)),
            ("The names: machine down, gpu across", text(4.6, 0.4, "gpu →") + text(1.1, 1.8, "machine ↓")),
            ("A group along machine: {0, 4}", ring(2.8, 1.8, 1.1, 2)),
            ("A group along gpu: {4, 5, 6, 7}", ring(4.6, 2.3, 4.8, 0.95)),
        ),
    )


def _cuts() -> Drawing:
    x, matrix, y = (1.3, 2.3, 1.2), (5, 3.2, 2), (9.4, 3.2, 1.2)  # middle, width and height of each

    def product(down: float) -> str:
        named = zip("xAy", (x, matrix, y), strict=True)
        boxes = (box(at, down, "", w, h) + text(at, down - 1.3, name) for name, (at, w, h) in named)
        return "".join(boxes) + text(2.85, down, "@") + text(7.2, down, "=")

    def columns(what: tuple[float, float, float], down: float, name: str) -> str:
        at, width, height = what
        places = [at + width * (rank - 1.5) / 4 for rank in range(4)]
        return "".join(box(x, down, f"{name}{rank}", width / 4, height, f"rank{rank}") for rank, x in enumerate(places))

    at, width, height = matrix
    rows = [(rank, 5.2 + height * (rank - 1.5) / 4) for rank in range(4)]
    pieces = "".join(box(at, down, f"A{rank}", width, height / 4, f"rank{rank}") for rank, down in rows)
    return Drawing(
        "One matrix, cut in two ways",
        ("Draw both cuts",),
        (11.2, 6.4),
        (
            ("x @ A = y", product(1.7)),
            ("A by columns: rank r has column block A r, and needs all of x", columns(matrix, 1.7, "A")),
            ("y comes out in columns, finished", columns(y, 1.7, "y")),
            ("Once more, A by rows", product(5.2) + pieces),
            ("Then x by columns", columns(x, 5.2, "x")),
            ("After `tp_row`: each rank has all of y, one of four parts of a sum", text(9.4, 5.2, "y0+y1+y2+y3")),
        ),
    )


def _nics() -> Drawing:
    at = [0.8 + 1.1 * rank for rank in range(8)]
    return Drawing(
        "One ring, and a ring for each NIC",
        ("Draw one machine with its eight GPUs and eight NICs",),
        (9.4, 3.6),
        (
            (
                "One machine, eight GPUs",
                box(4.65, 1.5, "", 9, 2.6) + "".join(box(x, 1, rank, 0.7, 0.7) for rank, x in enumerate(at)),
            ),
            ("A NIC for each", "".join(box(x, 2.4, "NIC", 0.9, 0.6) + path([(x, 1.35), (x, 2.1)]) for x in at)),
            (
                "After the fingers: the ring, 0 to 7",
                "".join(arrow(a + 0.36, 1, b - 0.36, 1) for a, b in zip(at, at[1:], strict=False)),
            ),
            ("It leaves by one NIC", arrow(at[7], 2.7, at[7], 3.5)),
        ),
    )


def _rails() -> Drawing:
    def held(rank: int) -> tuple[float, float]:
        return 1.2 + 1.5 * (rank % 4), 1.2 + 2.6 * (rank // 4)

    def holds(ranks: Iterable[int], words: Callable[[int], str]) -> str:
        return "".join(text(held(rank)[0], held(rank)[1] + 0.65, words(rank)) for rank in ranks)

    boxes = "".join(box(3.45, 1.3 + 2.6 * machine, "", 6.4, 2) for machine in range(2))
    boxes += "".join(box(*held(rank), rank, 0.8, 0.7) for rank in range(8)) + holds([0], lambda _: "abcd")
    scatter = "".join(arrow(1.2, 0.85, held(rank)[0], 0.85, 0.1 + 0.07 * rank) for rank in (1, 2, 3))
    between = "".join(arrow(held(rank)[0] + 0.3, 1.55, held(rank)[0] + 0.3, 3.45) for rank in range(4))
    return Drawing(
        "Write: a broadcast through every NIC",
        ("Draw two machines of four",),
        (7, 5.4),
        (
            ("Two machines of four; rank 0 has the vector", boxes),
            ("Scatter inside machine 0: a chunk for each", scatter + holds((1, 2, 3), lambda rank: "abcd"[rank])),
            (
                "Broadcast between: each chunk by its own NIC",
                between + holds(range(4, 8), lambda rank: "abcd"[rank % 4]),
            ),
            ("all_gather inside both: all have abcd", ring(3.45, 1.85, 6.2, 0.55) + ring(3.45, 4.45, 6.2, 0.55)),
        ),
    )


def _crossed() -> Drawing:
    at = {rank: (2.3 + 2.6 * (rank % 2), 1.2 + 1.9 * (rank // 2)) for rank in range(4)}
    first = "".join(
        text(at[rank][0], at[rank][1] + (-0.65 if rank < 2 else 0.65), "inside" if rank in (0, 3) else "across")
        for rank in range(4)
    )
    # each waits for the other rank of the group of its first call
    waits = (
        (0, 1, (0.5, 0), (-0.5, 0)),
        (1, 3, (0, 0.45), (0, -0.45)),
        (3, 2, (-0.5, 0), (0.5, 0)),
        (2, 0, (0, -0.45), (0, 0.45)),
    )
    arrows = "".join(arrow(at[a][0] + f[0], at[a][1] + f[1], at[b][0] + t[0], at[b][1] + t[1]) for a, b, f, t in waits)
    return Drawing(
        "Eight patients",
        ("Draw who waits for whom", "Draw the 2 x 2 mesh"),
        (7.2, 4.4),
        (
            ("Patient 4: two machines, one below the other", "".join(box(*place, rank) for rank, place in at.items())),
            ("What each calls first: inside its machine, or across", first),
            ("Whom each waits for: a circle of all four", arrows),
        ),
    )


CUTS = _cuts()
BOARD: dict[str, tuple[Drawing, ...]] = {
    "start_here": (_parabola(),),
    "ranks": (_memories(),),
    "everyone": (_table(),),
    "cost": (_curves(),),
    "algorithms": (_two_trees(), _distances(), _extra_ranks()),
    "groups": (_groups(),),
    "topology": (_nics(), _rails()),
    "tensor_parallel": (CUTS,),
    "experts": (_transpose(),),
    "compiler": (_square(),),
    "when_it_hangs": (_crossed(),),
    "cluster": (_two_ways_to_number(),),
    "capstone": (_mesh(),),
}
"""By chapter."""
