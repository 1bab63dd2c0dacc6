"""Who has heard of whom, from what was sent: what proves a barrier, since no buffer shows it, and an honest result.

A rank may leave a barrier only when it knows that all have come, and it can add only numbers that it has been told; and
it knows only what messages told it, directly or by way of others. A message tells what its sender knew when the send
began; the receiver knows it once it has waited for it. A collective of everybody tells everybody of its group about all
of it. So one passage over the recorded calls in the order of their times is enough.

Left out: whether a message says anything in its bytes. That it has come is the news.
"""


def knowledge(recording) -> list[set[int]]:
    """For every rank of a `replay.recording.Recording`, the ranks that it has heard of in the end, itself included."""
    known = [{rank} for rank in range(recording.ranks)]
    under_way: dict[int | None, set[int]] = {}  # by the number of the message: a recv may have named no sender
    for _, event in sorted(_moments(recording.events), key=lambda moment: moment[0]):
        number = event.match.number if event.match else None
        if event.op == "send":
            under_way[number] = set(known[event.rank])
        elif event.op == "recv":
            known[event.rank] |= under_way.get(number, set()) if event.match else set()
        else:
            known[event.rank] |= set(event.group)
    return known


def _moments(events):
    """(seconds, event): a send counts from its start, all else from when it was waited for; unawaited ones never."""
    for event in events:
        moment = event.start if event.op == "send" else event.end
        if moment is not None:
            yield moment, event
