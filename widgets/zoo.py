"""Zoo: all collectives on one page, each as what every rank holds before and after it; algorithms open in a Player.

The tables are read from schedules, so they are what the algorithms really do: the input of every rank at the start, and
the buffer with the result at the end. A rank may be left with something that nobody promised (half a sum on its way);
such cells are marked as left over. All schedules go to the browser at once, so that each opens without the kernel.

Left out: how an algorithm gets there (Player), which one is fastest (Race, cost_explorer).
"""

from html import escape

import traitlets

from collectives import CATALOGUE, Schedule, ScheduleError, build, spec
from widgets._packing import pack
from widgets._strip import HUES
from widgets.base import Widget, join, styles

MOST_RANKS = 8  # two tables side by side, with a column for each rank


class Zoo(Widget):
    """Shows every collective of `collectives` on `ranks` ranks (2 to 8), before and after, and all its algorithms.

    >>> Zoo(ranks=4)                                           # doctest: +SKIP
    >>> Zoo(ranks=4, opened="all_reduce.ring", step=2)         # doctest: +SKIP

    opened    "collective.algorithm" of the Player that is open, "" for the page of all; can be set and read
    step      0 stands before the first step of what is open, k after k steps; playing is True while it plays

    Columns are ranks, rows are chunks, as in the Player. Algorithms that do not take this number of ranks are left out.
    ValueError for other numbers of ranks, and for a name that is not in this zoo.
    """

    _esm = join("zoo.js")
    _css = styles("frame.css", "stage.css", "player.css", "zoo.css")
    opened = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    ranks = traitlets.Int().tag(sync=True)
    cards = traitlets.List().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    metas = traitlets.Dict().tag(sync=True)
    player = traitlets.Unicode(join("player.js")).tag(sync=True)  # loaded when the first algorithm is opened

    def __init__(self, ranks: int = 4, **traits):
        if isinstance(ranks, bool) or not isinstance(ranks, int) or not 2 <= ranks <= MOST_RANKS:
            raise ValueError(f"Zoo shows 2 to {MOST_RANKS} ranks side by side, got {ranks!r}")
        self.schedules = {collective: _schedules(collective, ranks) for collective in CATALOGUE}
        schedules = [schedule for family in self.schedules.values() for schedule in family]
        packed = {f"{s.collective}.{s.algorithm}": pack(s) for s in schedules}
        super().__init__(
            ranks=ranks,
            cards=[_card(collective, family) for collective, family in self.schedules.items()],
            data=b"".join(data for data, _ in packed.values()),
            metas={name: meta | {"nbytes": None, "goal": _goal(meta)} for name, (_, meta) in packed.items()},
            **traits,
        )

    @traitlets.validate("opened")
    def _known(self, proposal):
        if proposal["value"] and proposal["value"] not in self.metas:
            raise ValueError(f"this zoo has no {proposal['value']!r}; say for example {next(iter(self.metas))!r}")
        return proposal["value"]

    def summary(self) -> str:
        return f"ranks={self.ranks}"

    def fallback(self) -> str:
        """The tables themselves, as HTML that a notebook shows without trusting it."""
        return f"<div>{''.join(map(_still, self.cards))}</div>"


def _schedules(collective: str, ranks: int) -> list[Schedule]:
    """Every algorithm that takes so many ranks; those for several machines see machines of two."""
    found = []
    for name in CATALOGUE[collective]:
        try:
            found.append(build(collective, name, ranks, local=2))
        except ScheduleError:
            continue
    return found


def _goal(meta: dict) -> str:
    """What is there at the end, which tests prove of all that is in the catalogue."""
    return spec.GETS.get(meta["collective"], "").format(ranks=meta["ranks"])


def _card(collective: str, family: list[Schedule]) -> dict:
    """What js/zoo.js calls Card. Its tables are those of the first algorithm that leaves the least over."""
    shown = min(family, key=lambda s: (len(s.buffers), _left_over(s)))
    return {
        "collective": collective,
        "says": spec.SAYS[collective],
        "shown": shown.algorithm,
        "algorithms": [schedule.algorithm for schedule in family],
        "before": _table(shown, shown.start(), shown.buffers[0], None),
        "after": _after(shown),
    }


def _after(schedule: Schedule) -> dict:
    return _table(schedule, schedule.states(-1), schedule.result, (schedule.goal() or {}).get(schedule.result))


def _left_over(schedule: Schedule) -> int:
    """How long the symbols are that its table has to call left over."""
    return sum(len(symbol) for row in _after(schedule)["rows"] for symbol, _, left in row if left)


def _table(schedule, state, buffer: str, goal) -> dict:
    """Rows are chunks, columns ranks: each [symbol, `Cell.kind`, whether it is left over].

    `goal` has None where nothing is due.
    """
    cells = state.cells[buffer]
    rows = [
        [
            [str(cells[rank, chunk]), cells[rank, chunk].kind, goal is not None and goal[rank, chunk] is None]
            for rank in range(schedule.ranks)
        ]
        for chunk in range(schedule.chunks)
    ]
    return {"buffer": buffer if len(schedule.buffers) > 1 else "", "rows": rows}


def _still(card: dict) -> str:
    before, after = (_still_table(card[when], when) for when in ("before", "after"))
    return (
        f"<p><b>{card['collective']}</b>: {escape(card['says'])}</p>"
        f"<table><tr><td>{before}</td><td>&rarr;</td><td>{after}</td></tr></table>"
    )


def _still_table(table: dict, when: str) -> str:
    heads = "".join(f"<th>{rank}</th>" for rank in range(len(table["rows"][0])))
    rows, several = [], len(table["rows"]) > 1
    for chunk, row in enumerate(table["rows"]):
        cells = "".join(f"<td>{f'<i>({text})</i>' if left and text else text}</td>" for text, _, left in row)
        head = f"<th>{chunk if several else ''}</th>"
        rows.append(f'<tr style="background:{HUES[chunk % len(HUES)]};color:#000">{head}{cells}</tr>')
    name = f"{when}, {table['buffer']}" if table["buffer"] else when
    return (
        f"<table><caption>{name}</caption><tr><th>rank{'<br>chunk' * several}</th>{heads}</tr>{''.join(rows)}</table>"
    )
