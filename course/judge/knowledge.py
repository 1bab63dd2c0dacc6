"""Who has heard of whom, from what was sent: what proves a barrier, since no buffer shows it, and an honest result.

A rank may leave a barrier only when it knows that all have come, and it can add only numbers that it has been told; and
it knows only what messages told it, directly or by way of others. A message tells what its sender knew when the send
began; the receiver knows it once it has waited for it. A collective tells everybody of its group about all of it, and
what its members had heard before. So one passage over the recorded calls in the order of their times is enough.

Left out: whether a message says anything in its bytes. That it has come is the news.
"""


def knowledge(calls) -> list[set[int]]:
    """For every rank of `replay.recording.Captures`, the ranks that it has heard of in the end, itself included."""
    known = [{rank} for rank in range(calls.ranks)]
    told: dict[int, set[int]] = {}  # by the number of the call, since a recv may have named no sender
    for _, begins, event in sorted(_moments(calls.events), key=lambda moment: moment[0]):
        number = event.match.number if event.match else -1
        if begins:
            told[number] = told.get(number, set()) | known[event.rank]
        elif event.op == "recv":
            known[event.rank] |= told.get(number, set()) if event.match else set()
        else:
            known[event.rank] |= set(event.group) | (told.get(number, set()) if event.match else set())
    return known


def _moments(events):
    """(seconds, whether it tells or is told, event): a call tells from its start, and is told when it was waited for;
    unawaited ones never are."""
    for event in events:
        if event.op != "recv":
            yield event.start, True, event
        if event.op != "send" and event.end is not None:
            yield event.end, False, event
