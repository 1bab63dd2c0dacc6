"""What rank 0 calls in a recording, and with how many bytes: the lines that chapter 12 prints.

Left out: the other ranks. In that chapter they make the same calls, in their own groups.
"""

from itertools import groupby

MODEL = 4 * 576
"""Bytes of chapter 12's model in float32: one psi."""


def sent(recording, *names: str, steps: tuple[int, ...] = ()) -> None:
    """A line for each part of the recording, as barriers cut it: its name, then each collective with calls and bytes.

    `steps` are the training steps of each part; what is printed is for one of them.

    ValueError if there are more parts than names, or fewer.
    """
    events = [event for event in recording.events if event.rank == 0]
    parts = [list(part) for barrier, part in groupby(events, lambda event: event.op == "barrier") if not barrier]
    for name, part, many in zip(names, parts, steps or [1] * len(names), strict=True):
        psi: dict[str, list[float]] = {}
        for event in part:
            some = "" if len(event.group) == recording.ranks else f" of ranks {','.join(map(str, event.group))}"
            psi.setdefault(event.op.removesuffix("_single") + some, []).append(event.bytes / MODEL)
        lines = (f"{len(each) // many} {call} {sum(each) / many:.2f} Ψ" for call, each in psi.items())
        print(f"{name:20}", "; ".join(lines))
