"""A capture: what the tap of one rank kept of a recorded cell, and how it travels to the notebook's kernel.

It goes in the reply to the cell: as JSON, and the bytes of memory, which are most of it, in one raw buffer beside it.
Here are also the markers of op log rows that are not torch ops; see `rank._op_log` for those that are.
"""

BEGIN = "b"  # [BEGIN, number of the call]
END = "e"  # the wait for it has ended
LOOK = "l"  # [LOOK, number of a snapshot taken in between]
BLIND = "x"  # nothing after this was seen


def packed(capture: dict) -> bytes:
    """Takes the bytes out of the capture's snapshots; each change keeps their number instead."""
    snapshots = capture["snapshots"]
    raw = b"".join(data for *_, data in snapshots["changes"])
    snapshots["changes"] = [(*where, len(data)) for *where, data in snapshots["changes"]]
    return raw


def unpacked(capture: dict, raw: bytes) -> dict:
    """The inverse: the capture with its bytes back."""
    at, changes = 0, []
    for *where, nbytes in capture["snapshots"]["changes"]:
        changes.append((*where, raw[at : at + nbytes]))
        at += nbytes
    capture["snapshots"]["changes"] = changes
    return capture


def empty(rank: int) -> dict:
    """The capture of a rank that took no part in the cell."""
    snapshots: dict = {"looks": 1, "looked": [[]], "kept_until": None, "storages": {}, "parts": []}
    snapshots |= {"bindings": [], "final": [], "changes": []}
    log: dict = {"ops": [], "rows": [], "places": []}
    return {"rank": rank, "events": [], "dropped": 0, "groups": {}, "sites": [], "snapshots": snapshots, "op_log": log}
