"""The exercises of chapter 4: collectives without a root by hand, out of messages."""

from fractions import Fraction

from collectives import all_gather, all_to_all, reduce_scatter
from course.exercises.exercise import AT_ONCE, VECTOR, WHOLE, Exercise, neighbours

EXERCISES = (
    Exercise(
        name="ring_all_gather",
        asks="it returns everyone's x, one after the other in rank order, on every rank; p - 1 steps, in each of which "
        "all ranks send one chunk at once, to a neighbour; x stays as it is",
        lines=7,
        x=VECTOR,
        expected=f"{WHOLE}; dist.all_gather_single(expected, x)",
        in_place=False,
        textbook=all_gather.ring,
        whole="expected",
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: 1: "that is p chunks, one step too many",
            lambda p: p - 1: "that is all p chunks, p - 1 times; send only the one that has just come",
        },
        peers=neighbours,
        talks="its neighbours",
        hints=(
            "Make room for world_size chunks and put your own chunk into place `rank`. Then call shift p - 1 times.",
            "Pass your own chunk to the first shift. Pass to every later shift what the one before has returned.",
            "In step s (from 0) pass chunk rank - s to shift. It returns chunk rank - 1 - s. Both are modulo p.",
        ),
    ),
    Exercise(
        name="pairwise_reduce_scatter",
        asks="on rank r it returns the sum of everyone's r-th chunk of x (x is world_size chunks); at most p - 1 "
        "steps, in which all ranks send at once, p - 1 chunks each; x stays as it is",
        lines=10,
        x=VECTOR,
        expected="torch.empty(x.numel() // world_size, dtype=x.dtype); dist.reduce_scatter_single(expected, x.clone())",
        in_place=False,
        textbook=reduce_scatter.pairwise,
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={lambda p: p - 1: "that is the whole vector sent p - 1 times; send everyone its chunk only"},
        hints=(
            "Only rank d needs chunk d, so `to` needs chunks[to].",
            "What arrives from source is as long as total. Receive it into a new buffer, then add it to total.",
            "isend chunks[to] to `to`, recv from source, wait for what you sent, add.",
        ),
    ),
    Exercise(
        name="pairwise_all_to_all",
        asks="on rank r it returns everyone's r-th chunk of x, one after the other in rank order; at most p - 1 steps, "
        "in which all ranks send at once, p - 1 chunks each; x stays as it is",
        lines=10,
        x=VECTOR,
        expected="torch.empty_like(x); dist.all_to_all_single(expected, x)",
        in_place=False,
        textbook=all_to_all.pairwise,
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: p - 1: "that is the whole vector sent p - 1 times; send everyone its chunk only",
            lambda p: 1: "that is your own chunk too: it need not travel, and no rank can send to itself",
        },
        hints=(
            "Two lists of chunks: what goes out, x.chunk(world_size), and what comes in, the chunks of empty_like(x).",
            "Your own chunk does not travel: copy it over. Then p - 1 exchanges with partners ever further away.",
            "For hop 1 to p - 1: isend chunk rank + hop to rank + hop, recv from rank - hop into chunk rank - hop.",
        ),
    ),
    Exercise(
        name="uneven_all_to_all",
        asks="it returns what everyone has for this rank, end to end in the order of the ranks; the first counts[0] "
        "numbers of x are for rank 0, the next counts[1] for rank 1, and so on; use all_to_all_single at most twice; "
        "x stays as it is",
        lines=7,
        x="torch.randint(low, high, (sum(counts[rank]),)).to(dtype) * scale; x[::4] = 0",
        expected="[None] * p; dist.all_gather_object(expected, x.split(counts[rank])); "
        "expected = torch.cat([pieces[rank] for pieces in expected])",
        in_place=False,
        call="{name}(x, {counts}[rank])",
        allowed=frozenset({"all_to_all_single"}),
        calls=lambda p: 2,
        hints=(
            "You know what you send. Only the others know what you will get. So exchange the counts first.",
            "The counts are one number for each rank: torch.tensor(counts), an all_to_all_single of equal chunks.",
            "The second call takes two lists: all_to_all_single(out, x, what comes from each, what goes to each).",
            "out has as many numbers as come: incoming.sum() of them. incoming.tolist() is the list that torch wants.",
        ),
    ),
)
