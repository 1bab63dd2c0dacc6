"""A capture: what the tap of one rank kept of a recorded cell, and how it travels to the notebook's kernel.

It goes in the reply to the cell: as JSON, and the bytes of memory, which are most of it, in one raw buffer beside it.
Here are also the markers of op log rows that are not torch ops; see `rank._account` for those that are.
"""

BEGIN = "b"  # [BEGIN, number of the call]
END = "e"  # the wait for it has ended
LOOK = "l"  # [LOOK, number of a snapshot taken in between]
BLIND = "x"  # nothing after this was seen


def packed(capture: dict) -> bytes:
    """The bytes in the capture's film; each of its changes keeps their number in their place."""
    film = capture["film"]
    raw = b"".join(data for *_, data in film["changes"])
    film["changes"] = [(*where, len(data)) for *where, data in film["changes"]]
    return raw


def unpacked(capture: dict, raw: bytes) -> dict:
    """The inverse: the capture with its bytes back."""
    at, changes = 0, []
    for *where, nbytes in capture["film"]["changes"]:
        changes.append((*where, raw[at : at + nbytes]))
        at += nbytes
    capture["film"]["changes"] = changes
    return capture


def empty(rank: int) -> dict:
    """The capture of a rank that took no part in the cell."""
    film: dict = {"looks": 1, "looked": [[]], "kept_until": None, "storages": {}, "parts": []}
    film |= {"bindings": [], "final": [], "changes": []}
    log: dict = {"ops": [], "rows": [], "places": []}
    return {"rank": rank, "events": [], "dropped": 0, "groups": {}, "sites": [], "film": film, "account": log}
