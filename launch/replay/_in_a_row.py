"""A run cut in two where everything before is over on every rank: collectives by hand that come one after the other.

A cut is a number of calls of each rank, so that a message lies with both its calls before it or behind it. Each side is
a recording of its own, the tapes as they would be if the cell had ended there, or begun: so it is named as any run is,
by a proof (`replay._names`). What ranks hold at a cut is judged in the variables that they had by then.

Left out: cuts through a call that is under way, and built-ins other than barrier.
"""

import base64
from collections.abc import Iterator

from launch.replay._happened import Happened
from launch.shared.tape import BEGIN, BLIND, END, LOOK

FEWEST = 3  # ranks; of two nearly any message is a collective
MOST_CALLS = 400  # of all ranks: each cut is read as a run of its own
MOST_CUTS = 24


def halves(runs: list[dict], happened: Happened) -> Iterator[tuple[list[dict], list[dict]]]:
    """The tapes before and behind each cut, the latest cut first."""
    calls = {run["rank"]: len(run["events"]) for run in runs}
    mixed = any(item.calls[0].event["op"] != "barrier" for item in happened.collectives)
    if len(runs) < FEWEST or sum(calls.values()) > MOST_CALLS or mixed:
        return
    if not happened.matched or happened.lonely or any(run["dropped"] for run in runs):
        return
    if not all(happened.seen(rank) for rank in calls):
        return
    for cut in _cuts(calls, happened)[:MOST_CUTS]:
        if all(_is_clean(happened, rank, number) for rank, number in cut.items()):
            yield [_until(run, cut, happened) for run in runs], [_from(run, cut, happened) for run in runs]


def _cuts(calls: dict[int, int], happened: Happened) -> list[dict[int, int]]:
    """rank -> how many of its calls come before the cut: after so many calls of each rank, or so many steps, and
    whatever these need."""
    asked = [{rank: min(i, n) for rank, n in calls.items()} for i in range(1, max(calls.values()))]
    for step in range(1, 1 + max(item.step for item in happened.matched)):
        before = [call for item in happened.matched if item.step < step for call in item.calls]
        asked.append({rank: max([1 + c.number for c in before if c.rank == rank], default=0) for rank in calls})
    found = [_closed(cut, happened) for cut in asked]
    real = [cut for cut in found if all(0 < cut[rank] < calls[rank] for rank in calls)]
    return sorted({tuple(cut.items()): cut for cut in real}.values(), key=lambda cut: -sum(cut.values()))


def _closed(cut: dict[int, int], happened: Happened) -> dict[int, int]:
    """With the other side of every call before it."""
    cut, changed = dict(cut), True
    while changed:
        changed = False
        for (rank, number), item in happened.items.items():
            if number < cut[rank]:
                for call in item.calls:
                    changed |= call.number >= cut[call.rank]
                    cut[call.rank] = max(cut[call.rank], call.number + 1)
    return cut


def _is_clean(happened: Happened, rank: int, number: int) -> bool:
    """Whether the first calls of a rank are over when the next one begins."""
    spans = happened.ranks[rank].spans
    ends = [spans[i][True] for i in range(number)]
    return all(end is not None and end < spans[number][False] for end in ends)


def _until(run: dict, cut: dict[int, int], happened: Happened) -> dict:
    """As if the cell had ended just before the next call began: a look at all came there. Names that were bound anew
    meanwhile, such as those of a function that was called again, belong to what comes after."""
    number, film = cut[run["rank"]], run["film"]
    look = run["events"][number]["looks"][0]
    old = _bound(film, look - 1)
    bindings = [b for b in film["bindings"] if b[0] < look or b[0] == look and b[1] not in old]
    final = [[path, *binding[3:6]] for path, binding in (_bound(film, look) | old).items()]
    film = film | {"looks": look + 1, "bindings": bindings, "final": final, "looked": film["looked"][: look + 1]}
    film["changes"] = [change for change in film["changes"] if change[0] <= look]
    rows = run["account"]["rows"][: happened.ranks[run["rank"]].spans[number][False]]
    return run | {"events": run["events"][:number], "film": film, "account": run["account"] | {"rows": rows}}


def _from(run: dict, cut: dict[int, int], happened: Happened) -> dict:
    """As if the cell had begun after the last call before the cut, and not been looked at before the next one."""
    number, film, spans = cut[run["rank"]], run["film"], happened.ranks[run["rank"]].spans
    look, at = run["events"][number]["looks"][0], 1 + max(spans[i][True] for i in range(number))
    begun = spans[number][False]

    def later(n: int | None) -> int | None:
        return None if n is None else max(0, n - look)

    film = film | {"looks": film["looks"] - look, "looked": film["looked"][look:], "changes": _seen_from(film, look)}
    film["kept_until"] = later(film["kept_until"])
    film["storages"] = {n: known | {"first": later(known["first"])} for n, known in film["storages"].items()}
    film["bindings"] = [[0, *binding[1:]] for binding in _bound(film, look).values()]
    film["bindings"] += [[b[0] - look, *b[1:]] for b in run["film"]["bindings"] if b[0] > look]
    events = [event | {"looks": [later(each) for each in event["looks"]]} for event in run["events"][number:]]
    rows = []
    for i, row in enumerate(run["account"]["rows"][at:], start=at):
        if row[0] in (BEGIN, END):
            rows.append([row[0], row[1] - number])
        elif row[0] == LOOK:
            if i > begun:
                rows.append([LOOK, row[1] - look])
        elif row[0] != BLIND:
            rows.append(row)
    return run | {"events": events, "film": film, "account": run["account"] | {"rows": rows}}


def _bound(film: dict, look: int) -> dict[str, list]:
    """path -> the binding that it had at a look."""
    return {binding[1]: binding for binding in film["bindings"] if binding[0] <= look}


def _seen_from(film: dict, look: int) -> list[tuple]:
    """The changes of a film that begins with a look: what all parts held there, then what changed."""
    held: dict[int, bytearray] = {}
    for when, part, lo, data in film["changes"]:
        if when <= look:
            raw = base64.b64decode(data)
            if part not in held or not film["parts"][part]["whole"]:
                held[part] = bytearray(raw)
            else:
                held[part][lo : lo + len(raw)] = raw
    first = [(0, part, 0, base64.b64encode(raw).decode()) for part, raw in held.items()]
    return first + [(when - look, part, lo, data) for when, part, lo, data in film["changes"] if when > look]
