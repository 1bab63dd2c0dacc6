"""Every typical mistake as a real wrong program on real ranks, and the sentence that is said about it.

The programs stand on the lines that the sentences name: line 1 is what the magic would be.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from course.exercises import EXERCISES
from course.exercises.draw import fixed
from course.judge import diagnosis, trial
from course.judge.ways import Wrong

TO_RANK_0 = """
def tree_reduce(x):
    got = torch.{made}_like(x)
    if rank:
        {before}
        dist.send(x, 0)
        return
    for src in range(1, world_size):
        dist.recv(got, src)
        {add}
    {after}
"""

GIVEN = {"made": "empty", "before": "pass", "add": "x += got", "after": "pass"}


def to_rank_0(**parts):
    """A flat reduce in which some lines are others: it has too many steps, but that is looked at last."""
    return "tree_reduce", TO_RANK_0.format(**GIVEN | parts)


def exchanged(start, add="total += got"):
    """Everyone's r-th piece is added up on rank r; `total` begins as `start`."""
    return (
        "pairwise_reduce_scatter",
        f"""
def pairwise_reduce_scatter(x):
    pieces = x.chunk(world_size)
    total, got = {start}, torch.empty_like(pieces[0])
    for hop in range(1, world_size):
        to, source = (rank + hop) % world_size, (rank - hop) % world_size
        sending = dist.isend(pieces[to], to)
        dist.recv(got, source)
        sending.wait()
        {add}
    return total
""",
    )


def gathered(
    place="(rank - 1 - step) % world_size", own="pieces[rank].copy_(x)", made="empty", cat="torch.cat(pieces)"
):
    return (
        "ring_all_gather",
        f"""
def ring_all_gather(x):
    pieces = [torch.{made}_like(x) for _ in range(world_size)]
    {own}
    outgoing = x.clone()
    for step in range(world_size - 1):
        sending = dist.isend(outgoing, (rank + 1) % world_size)
        dist.recv(pieces[{place}], (rank - 1) % world_size)
        sending.wait()
        outgoing.copy_(pieces[{place}])
    return {cat}
""",
    )


def ringed(arrived="(rank - 2 - step) % world_size", add="chunks[arrived] += arriving", second=""):
    """A ring's reduce-scatter; with a `second` half a ring_all_reduce."""
    name = "ring_all_reduce" if second else "ring_reduce_scatter"
    return (
        name,
        f"""
def {name}(x):
    chunks = list(x.chunk(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        arrived = {arrived}
        {add}
    for step in range(world_size - 1 if {bool(second)} else 0):
        arrived = (rank - 1 - step) % world_size
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        {second or "pass"}
        sending.wait()
""",
    )


def passed_round(keep, outgoing="got.clone()"):
    """A ring_all_gather with one buffer for what arrives, `got`."""
    return (
        "ring_all_gather",
        f"""
def ring_all_gather(x):
    pieces, got, outgoing = [x.clone() for _ in range(world_size)], torch.empty_like(x), x
    for step in range(world_size - 1):
        sending = dist.isend(outgoing, (rank + 1) % world_size)
        dist.recv(got, (rank - 1) % world_size)
        sending.wait()
        pieces[(rank - 1 - step) % world_size] = {keep}
        outgoing = {outgoing}
    return torch.cat(pieces)
""",
    )


ALL = "a0 + b0 + c0 + d0"
CAUSES = {
    "added twice": (
        *to_rank_0(add="x += got if src != 2 else 2 * got"),
        f"rank 0: x holds a0 + b0 + c0 + c0 + d0 and should hold {ALL}: rank 2's was added twice (line 10); add every "
        "rank's once; in numbers # # ... where # # ... should be",
    ),
    "added twice, another never": (
        *to_rank_0(add="x += got if src != 1 else 0", after="x += got"),
        f"rank 0: x holds a0 + c0 + d0 + d0 and should hold {ALL}: rank 3's was added twice (line 11), and rank 1's is "
        "missing; add every rank's once; in numbers # # ... where # # ... should be",
    ),
    "added twice elsewhere": (
        "tree_reduce",
        """
def tree_reduce(x):
    got = torch.empty_like(x)
    if rank % 2:
        dist.send(x, rank - 1)
    else:
        dist.recv(got, rank + 1)
        x += got
        if rank == 2:
            x += got
            dist.send(x, 0)
        else:
            dist.recv(got, 2)
            x += got
""",
        f"rank 0: x holds a0 + b0 + c0 + d0 + d0 and should hold {ALL}: rank 3's was added twice on rank 2; add every "
        "rank's once; in numbers # # ... where # # ... should be",
    ),
    "came and was not added": (
        *to_rank_0(add="x += got if src != 3 else 0"),
        f"rank 0: x holds a0 + b0 + c0 and should hold {ALL}: rank 3's came here, but is not in it; add each piece "
        "before you receive the next one in its place; in numbers # # ... where # # ... should be",
    ),
    "never came": (
        "tree_reduce",
        """
def tree_reduce(x):
    got = torch.empty_like(x)
    if rank in (1, 2):
        dist.send(x, rank - 1)
    if rank in (0, 1):
        dist.recv(got, rank + 1)
        x += got
""",
        f"rank 0: x holds a0 + b0 and should hold {ALL}: ranks 2-3's are not in it; look at which rank sends what, "
        "and add what arrives",
    ),
    "its own is missing": (
        *to_rank_0(add="x.copy_(got) if src == 1 else x.add_(got)"),
        f"rank 0: x holds b0 + c0 + d0 and should hold {ALL}: the rank's own piece is missing (it wrote there last "
        "on line 10); add what arrives to it with +=; in numbers # # ... where # # ... should be",
    ),
    "its own is missing in what is returned": (
        *exchanged("torch.zeros_like(pieces[rank])"),
        f"rank 0: the answer holds b0 + c0 + d0 and should hold {ALL}: the rank's own piece is missing; start the sum "
        "with a clone of it; in numbers # # ... where # # ... should be; ranks 1-3 are wrong too",
    ),
    "overwritten before it was sent": (
        "swap",
        """
def swap(x):
    partner = rank ^ 1
    if rank < partner:
        dist.recv(x, partner)
        dist.send(x, partner)
    else:
        dist.send(x, partner)
        dist.recv(x, partner)
    return x
""",
        "rank 1: the answer holds b0 and should hold a0: rank 0's own piece was overwritten by what it had "
        "received (line 5) before it was sent; receive into another tensor, or send it first; in numbers # # ... "
        "where # # ... should be; rank 3 is wrong too",
    ),
    "sent before it was there": (
        "tree_broadcast",
        """
def tree_broadcast(x):
    if rank < 3:
        sending = dist.isend(x.clone(), rank + 1)
    if rank:
        dist.recv(x, rank - 1)
    if rank < 3:
        sending.wait()
""",
        "rank 2: x holds b0 and should hold a0: rank 1 sent its own before it had rank 0's; "
        "receive first, then send; in numbers # # ... where # # ... should be; rank 3 is wrong too",
    ),
    "swapped": (
        *gathered(place="(rank + 1 + step) % world_size"),
        "rank 0, chunk 1 holds d0 and should hold b0: the right pieces are there in the wrong places: chunk 1 and "
        "chunk 3 are swapped; put what comes from a rank where that rank's piece belongs; in numbers # # ... "
        "where # # ... should be; ranks 1-3 are wrong too",
    ),
    "rotated": (
        *gathered(cat="torch.cat(pieces[1:] + pieces[:1])"),
        "rank 0, chunk 0 holds b0 and should hold a0: the right pieces are there in the wrong places: each of them "
        "is 1 place too early; put what comes from a rank where that rank's piece belongs; in numbers # # ... "
        "where # # ... should be; ranks 1-3 are wrong too",
    ),
    "one element off": (
        "tree_broadcast",
        """
def tree_broadcast(x):
    if rank == 0:
        for dst in range(1, world_size):
            dist.send(x[:-1], dst)
    else:
        dist.recv(x[1:], 0)
""",
        "rank 1: x (element 0) holds b0 and should hold a0: it is as it was at the start; receive "
        "into it, or copy_ what you received; in numbers # # ... where # # ... should be; ranks 2-3 are wrong too",
    ),
    "another chunk": (
        *exchanged("pieces[0].clone()"),
        "rank 1: the answer holds a1 + b0 + c1 + d1 and should hold a1 + b1 + c1 + d1: rank 1 contributed another "
        "chunk; "
        "look at which chunk is sent, and to which one it is added; in numbers # # ... where # # ... should be; "
        "ranks 2-3 are wrong too",
    ),
    "never filled": (
        *gathered(own="pass"),
        "rank 0, chunk 0 holds what torch.empty found in memory and should hold a0: it was never filled; receive or "
        "copy into it; in numbers * where # # ... should be; ranks 1-3 are wrong too",
    ),
    "begun in what was never filled": (
        *exchanged("torch.empty_like(pieces[rank])"),
        f"rank 0: the answer holds b0 + c0 + d0 + what torch.empty found in memory and should hold {ALL}: a tensor "
        "that was never filled is in the sum; start it with torch.zeros_like, or with a clone of your own "
        "piece; in numbers * where # # ... should be; ranks 1-3 are wrong too",
    ),
    "left at zeros": (
        *gathered(own="pass", made="zeros"),
        "rank 0, chunk 0 holds zeros and should hold a0: it was left at zeros; receive, copy or add into it; in "
        "numbers 0 0 ... where # # ... should be; ranks 1-3 are wrong too",
    ),
    "inf on a rank": (
        *to_rank_0(before="x = torch.full_like(x, float('inf')) if rank == 2 else x"),
        "rank 2 was the first to have inf, before the first message; look there for a division by zero, or for a "
        "number that is too large; in numbers *inf",
    ),
    "nan at the end": (
        *to_rank_0(after="x *= float('nan')"),
        "rank 0 was the first to have nan, after step 3; look there for a division by zero, or for a number that "
        "is too large",
    ),
    "divided": (
        *to_rank_0(after="x /= world_size"),
        f"rank 0: x holds ({ALL}) / 4 and should hold {ALL}: all of it was divided by 4 (it wrote there last on "
        "line 11); a sum is not divided; in numbers # # ... where # # ... should be",
    ),
    "multiplied": (
        *to_rank_0(after="x *= 3"),
        f"rank 0: x holds 3 ({ALL}) and should hold {ALL}: all of it is in there three times (it wrote there last on "
        "line 11); add every rank's once; in numbers # # ... where # # ... should be",
    ),
    "subtracted": (
        *to_rank_0(add="x -= got"),
        f"rank 0: x holds a0 - b0 - c0 - d0 and should hold {ALL}: ranks 1-3's were subtracted; add with +=; in "
        "numbers # # ... where # # ... should be",
    ),
    "the largest": (
        *to_rank_0(add="x.copy_(torch.maximum(x, got))"),
        f"rank 0: x holds the largest of a0, b0, c0, d0 and should hold {ALL}: that is no sum (it wrote there last "
        "on line 10); add with +=; in numbers # # ... where # # ... should be",
    ),
    "computed": (
        *to_rank_0(after="x.copy_(x.sort().values)"),
        f"rank 0: x holds the result of other operations than copies and sums and should hold {ALL}: the recording "
        "cannot say what is in that (it wrote there last on line 11); use copies and +=; in numbers # # ... where "
        "# # ... should be",
    ),
    "outside torch": (
        *to_rank_0(after="x.numpy()[:] = 7"),
        f"rank 0: x holds something that was changed outside torch and should hold {ALL}: the recording cannot say "
        "what is in that (it wrote there last on line 10); use torch's own copy_ and +=; in numbers 7 7 ... where "
        "# # ... should be",
    ),
    "another x than the one given": (
        *to_rank_0(before="x = x + 1"),
        f"rank 0: x holds a0 + numbers that came from no rank's x and should hold {ALL}: a rank had or made them "
        "itself; "
        "only what came from an x belongs there",
    ),
    "x changed before the first message": (
        *to_rank_0(before="x += 1"),
        f"rank 0: x holds {ALL} and should hold {ALL}: the right pieces are in it, but some rank changed its x "
        "before its first message; send x as it is; in numbers # # ... where # # ... should be",
    ),
    "numbers of nobody": (
        *gathered(own="pieces[rank].fill_(7)"),
        "rank 0, chunk 0 holds numbers that came from no rank's x and should hold a0: a rank had or made them "
        "itself; only "
        "what came from an x belongs there; in numbers 7 7 ... where # # ... should be; ranks 1-3 are wrong too",
    ),
    "nothing arrived": (
        "tree_broadcast",
        """
def tree_broadcast(x):
    if rank == 0:
        dist.send(x, 1)
        dist.send(x, 2)
    elif rank < 3:
        dist.recv(x if rank == 1 else x.clone(), 0)
""",
        "rank 2: x holds c0 and should hold a0: it is as it was at the start; receive "
        "into it, or "
        "copy_ what you received; in numbers # # ... where # # ... should be; rank 3 is wrong too",
    ),
    "added where it should be copied": (
        "pass_it_on",
        """
def pass_it_on(x):
    got = torch.empty_like(x)
    if rank:
        dist.recv(got, rank - 1)
        x += got
    if rank < world_size - 1:
        dist.send(x, rank + 1)
""",
        "rank 1: x holds a0 + b0 and should hold a0: b0 does not belong there; receive into that place, or "
        "copy_ there, instead of adding",
    ),
    "added to other chunks": (
        *ringed(arrived="left"),
        f"rank 0, chunk 0 holds a0 and should hold {ALL}: it is as it was at the start, nothing was ever added to it, "
        "but other parts of x have changed; look at which chunk arrives, and add it to that one; in numbers",
    ),
    "another chunk added": (
        *ringed(arrived="(rank - step) % world_size"),
        f"rank 0, chunk 0 holds a0 + d2 and should hold {ALL}: ranks 1-3's are not in it, and d2 does not belong "
        "there; look at which chunk arrives, and add it to that one; in numbers",
    ),
    "a finished sum added": (
        *ringed(second="dist.recv(arriving, left); chunks[arrived] += arriving"),
        "that sum is finished on rank 1, and here what arrived was added to what was there already; receive it into "
        "its chunk, or copy_ it; in numbers",
    ),
    "a sum that is in the list alone": (
        *ringed(add="chunks[arrived] = chunks[arrived] + arriving", second="dist.recv(chunks[arrived], left)"),
        "that sum was on this rank, but in another tensor than x; write it into x with += or copy_: chunks[i] = ... "
        "only puts another tensor into the list; in numbers",
    ),
    "a first half alone": (
        *ringed(second="dist.recv(arriving, left)"),
        "that sum is finished on rank 1, but not here; pass it on to every rank; in numbers",
    ),
    "one tensor for all pieces": (
        *passed_round("got"),
        "rank 0, chunk 2 holds b0 and should hold c0: rank 2's was here too, but chunks 1-3 all hold "
        "what came last; give each piece a tensor of its own, or put a clone() of it there; in numbers",
    ),
    "the own piece every time": (
        *passed_round("got.clone()", outgoing="x"),
        "rank 0, chunk 1 holds d0 and should hold b0: chunks 1-3 all hold the same, and rank 1's "
        "never came here; pass on what has just come; in numbers",
    ),
    "added before it came": (
        "pairwise_reduce_scatter",
        exchanged("pieces[rank].clone()")[1]
        .replace("dist.recv(got", "receiving = dist.irecv(got")
        .replace("sending.wait()", "")
        .replace("total += got", "total += got; sending.wait(); receiving.wait()"),
        "rank 0 reads the tensor of its irecv (line 8) before it waits for that (line 10), so nobody knows what it "
        "holds then; wait() first; in numbers",
    ),
    "nobody sends": (
        "distributed_mean",
        "\ndef distributed_mean(x):\n    return x.mean()\n",
        "no rank has sent anything, so ranks 1-3's numbers are not in it; send them, or use a collective",
    ),
    "not divided": (
        "clip_norm",
        """
def clip_norm(x, limit):
    squares = x.square().sum()
    dist.all_reduce(squares)
    x *= limit / squares.sqrt() * 2
""",
        "rank 0: x is * and should be *: all of it is 2 times too large; ranks 1-3 are wrong too",
    ),
}


def said(name, source):
    return trial.Trial(EXERCISES[name], f"#{source}", fixed(0, 4, "float32")).fault()


def pattern(words):
    """The words as a regular expression: # is any number, * anything."""
    return re.escape(words).replace(r"\#", r"-?\d+(\.\d+)?").replace("#", r"-?\d+(\.\d+)?").replace(r"\*", r".*")


@pytest.mark.parametrize("cause", CAUSES)
def test_a_typical_mistake_has_its_own_sentence(cause):
    name, source, words = CAUSES[cause]
    told = said(name, source)
    assert re.search(pattern(words), told), told


def test_a_slip_has_to_explain_every_wrong_rank():
    """Scaled by the largest norm, which is rank 0's own: on rank 0 alone that is its own norm, too."""
    x, own = [np.array([3.0, 4.0]), np.array([1.0, 1.0])], [{"values": np.array([0.6, 0.8])}]
    known = {"exercise": EXERCISES["clip_norm"], "p": 2, "given": x, "draw": SimpleNamespace(limit=1)}
    known["expected"] = [each / 27**0.5 for each in x]
    for rank_1, why in (
        (x[1] / 5, "scaled by the largest of the ranks' norms"),
        (x[1] / 7, ""),
        (None, "by this rank's"),
    ):
        second = {"values": known["expected"][1] if rank_1 is None else rank_1}
        told = diagnosis.slip_of(SimpleNamespace(answers=[*own, second], **known), 0)
        assert why in told and bool(told) == bool(why), told


def test_what_is_written_while_it_is_sent_is_a_fault_even_when_all_went_well():
    source = """
def shift(x):
    arriving, outgoing = torch.empty_like(x), x.clone()
    sending = dist.isend(outgoing, (rank + 1) % world_size)
    outgoing.zero_()
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""
    words = (
        "rank 0 wrote to the tensor of its send (line 4) before that was over, so nobody knows what went out; "
        "receive into another tensor, and change this one only after wait()"
    )
    assert words in said("shift", source)


@pytest.mark.parametrize(
    "value, expected, rounded",
    [
        (np.float32(1 / 3), np.float32(1 / 3 + 1e-7), True),
        (np.float64(903175786), np.float32(903175808), True),
        (np.float32(1), np.float32(1.001), False),
        (np.int64(10**9), np.int64(10**9 + 1), False),
    ],
)
def test_a_number_that_is_only_rounded_is_told_from_a_wrong_one(value, expected, rounded):
    wrong = Wrong(0, 1, np.array([0, value], value.dtype), np.array([0, expected], expected.dtype), 1)
    assert diagnosis._only_rounded(wrong) is rounded
