"""Three variants of an exam's questions: neighbours get other numbers, and choices in another order.

The first variant has the chapter's numbers. The template of a question gives the chapter's own text with the first
numbers, so it cannot drift away from it. What a variant asks for is a formula in its numbers.

A true-or-false question has another sentence about the same thing (stated.py).

Left out: the common wrong answers, whose sentences speak of the chapter's numbers; questions that no exam takes.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from course.questions.question import Answer, Choose, Number, Question, Statement
from course.teach.stated import STATED

MOST = 3


@dataclass(frozen=True)
class Varied:
    """A question as a template, the formula of what is right, its reason, and the numbers of each variant."""

    text: str
    right: str
    why: str
    numbers: tuple[dict[str, Any], ...]


def _each(*names: str, of: tuple[tuple, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(names, values, strict=True)) for values in of)


VARIED = {
    "messages_in_all": Varied(
        "{many} ranks. Rank 0 receives the vector of each other rank, adds them up and sends the sum back to each. "
        "How many messages is that?",
        "2*({p}-1)",
        "One vector comes from each of the other ranks, and one copy of the sum goes back to each.",
        _each("many", "p", of=(("Four", 4), ("Six", 6), ("Nine", 9))),
    ),
    "broadcast_bytes": Varied(
        "{p} ranks; rank 0 sends its vector of N bytes to each of the others, one after the other. How many bytes are "
        "sent in total, in units of N?",
        "{p}-1",
        "N for each rank but rank 0.",
        _each("p", of=((4,), (6,), (12,))),
    ),
    "broadcast_tree": Varied(
        "{p} ranks; rank 0 has a vector. In each step every rank that has it may send it to one rank that does not. "
        "After how many steps can all {p} have it?",
        "log2({p})",
        "In each step twice as many ranks have it.",
        _each("p", of=((8,), (16,), (64,))),
    ),
    "scatter_root": Varied(
        "{p} ranks; rank 0 has a vector of N bytes, each rank is to get its own {part}. How many bytes does rank 0 "
        "send, in units of N?",
        "({p}-1)/{p}",
        "All pieces but its own.",
        _each("p", "part", of=((4, "quarter"), (5, "fifth"), (8, "eighth"))),
    ),
    "reduce_value": Varied(
        "{p} ranks, rank r's number k is 10 r + k, and rank 0 gets the sum of all vectors. What is number {k} of its "
        "vector afterwards?",
        "10*{p}*({p}-1)/2+{p}*{k}",
        "The sum goes over the ranks: 10 r + {k} for each r.",
        _each("p", "k", of=((4, 1), (5, 3), (6, 2))),
    ),
    "all_gather_sends": Varied(
        "{p} ranks, each has a {part} of N bytes. All chunks go round the ring until every rank has all {many}. How "
        "many bytes does one rank send, in units of N?",
        "({p}-1)/{p}",
        "It passes on every chunk but the one that its right-hand neighbour began with.",
        _each("p", "part", "many", of=((4, "quarter", "four"), (8, "eighth", "eight"), (5, "fifth", "five"))),
    ),
    "reduce_scatter_value": Varied(
        "{p} ranks, rank r's number k is 10 r + k. After a reduce_scatter each rank has one number. Which one does "
        "rank {k} have?",
        "10*{p}*({p}-1)/2+{p}*{k}",
        "Number {k} of every rank, added up.",
        _each("p", "k", of=((4, 2), (5, 3), (6, 4))),
    ),
    "ring_many_ranks": Varied(
        "On 4 ranks each rank of the chunked ring sends 1.5 N, and on 64, as chapter 0 printed, 1.97 N. How much is it "
        "on {p} ranks? Answer in N.",
        "2*({p}-1)/{p}",
        "2 (p - 1) chunks of N/p.",
        _each("p", of=((16,), (10,), (6,))),
    ),
    "long_message": Varied(
        "A link has alpha = {alpha} microseconds and carries {rate} GB/s. How long does a message of {size} MB take? "
        "Write the unit, too.",
        "{alpha}e-6+{size}e6/({rate}e9)",
        "alpha, and the bytes over the bandwidth.",
        _each("alpha", "rate", "size", of=((20, 2, 4), (50, 2, 8), (100, 10, 5))),
    ),
    "estimate_gradients": Varied(
        "Llama 3 8B has 8 billion parameters, and each gradient takes {each} bytes. {p} GPUs, one in each "
        "machine, all-reduce them by a ring, over NICs of {rate} GB/s in each direction. How long does it take, "
        "without latency?",
        "2*({p}-1)/{p}*8*{each}/{rate}",
        "2 (p - 1)/p times the bytes of all gradients, over the bandwidth.",
        _each("each", "p", "rate", of=((2, 16, 50), (4, 8, 25), (2, 32, 100))),
    ),
    "groups_rank_5": Varied(
        "Rank r holds {times} r. Ranks 0 to 3 all-reduce in the group `low`, ranks 4 to 7 in the group `high`. What "
        "will rank {rank} hold?",
        "{times}*{ranks}",
        "The sum of the numbers of its own group.",
        _each("times", "rank", "ranks", of=((10, 5, 22), (5, 6, 22), (100, 2, 6))),
    ),
    "dp_per_parameter": Varied(
        "{layers} layers, each with a gradient of 256 KiB (262,144 bytes), are all-reduced one after the other by a "
        "ring of 4 ranks: {ms} ms per message, {rate} MB/s. How long does that take? Write the unit, too.",
        "{layers}*(6*{ms}e-3+1.5*262144/({rate}e6))",
        "Each layer takes 6 messages in a row, and 1.5 times its bytes.",
        _each("layers", "ms", "rate", of=((16, 4, 16), (24, 2, 8), (10, 5, 20))),
    ),
    "sharding_bytes_per_parameter": Varied(
        "Four ranks train one model with {optimizer}, all in float{bits}, and all-reduce their gradients. How many "
        "bytes does each rank keep for one parameter: its weight, its gradient and the state of {optimizer}?",
        "{numbers}*{bits}/8",
        "{numbers} numbers: the weight, the gradient, and the optimizer's state.",
        _each("optimizer", "bits", "numbers", of=(("Adam", 32, 4), ("SGD with momentum", 32, 3), ("Adam", 64, 4))),
    ),
    "estimate_sharded_memory": Varied(
        "A model has {billion} billion parameters. Weights and gradients take 2 bytes each; the optimizer "
        "takes 12: a weight in float32 and Adam's two averages. What does each of {p} GPUs keep under ZeRO-2?",
        "(2+14/{p})*{billion}e9",
        "The weights whole, gradients and the optimizer's 12 bytes cut.",
        _each("billion", "p", of=((8, 16), (13, 8), (70, 64))),
    ),
    "tp_layer_bytes": Varied(
        "A layer is attention and an MLP, each with a column-parallel and a row-parallel part. {tokens:,} tokens, "
        "hidden size {hidden:,}, 2 bytes a number, {p} GPUs, ring. How many bytes does each GPU send for one layer in "
        "one step, forward and backward?",
        "4*2*({p}-1)/{p}*{tokens}*{hidden}*2",
        "Four all_reduces of tokens times hidden size, 2 (p - 1)/p of their bytes each.",
        _each("tokens", "hidden", "p", of=((4096, 8192, 8), (2048, 4096, 4), (8192, 5120, 8))),
    ),
    "pipe_slots": Varied(
        "{m} micro-batches go forward through {p} stages. Each stage takes one slot of time for a "
        "micro-batch. After how many slots has the last stage finished the last micro-batch?",
        "{m}+{p}-1",
        "The first one takes a slot in each stage before the last; then one comes out in each slot.",
        _each("m", "p", of=((8, 4), (12, 6), (16, 8))),
    ),
    "pipe_how_many": Varied(
        "{p} stages. How many micro-batches do you need so that the bubble is at most a {part} of the time?",
        "({parts}-1)*({p}-1)",
        "(p - 1)/(m + p - 1) is a {part} when m + p - 1 is {parts} times p - 1.",
        _each("p", "part", "parts", of=((8, "tenth", 10), (5, "fifth", 5), (6, "quarter", 4))),
    ),
    "pipe_boundary_bytes": Varied(
        "A batch of {tokens:,} tokens, hidden size {hidden:,}, 2 bytes a number, cut in {m} micro-batches. How many "
        "bytes does a stage in the middle send in one step, to both neighbours together?",
        "2*{tokens}*{hidden}*2",
        "The activations of the batch one way and their gradients the other, in as many messages as you like.",
        _each("tokens", "hidden", "m", of=((4096, 8192, 16), (2048, 4096, 8), (8192, 5120, 32))),
    ),
    "experts_skew": Varied(
        "Four ranks with 64 tokens each. The router sends {first} of each rank's tokens to expert 0, and {rest} to "
        "each of the others. How many times as long does the exchange take as with 16 to each? Each rank has one "
        "NIC that sends and receives at the same speed.",
        "{first}/16",
        "Rank 0 receives 3 times {first} tokens, where it was 3 times 16.",
        _each("first", "rest", of=((40, 8), (52, 4), (34, 10))),
    ),
    "cluster_rank": Varied(
        "{machines} machines of {gpus} GPUs, started by torchrun. The first error is in the log of rank {rank}. What "
        "is the GROUP_RANK of its machine?",
        "({rank}-{gpu})/{gpus}",
        "The rank over the GPUs of a machine, rounded down; it is GPU {gpu} there.",
        _each("machines", "gpus", "rank", "gpu", of=((32, 8, 211, 3), (64, 4, 211, 3), (16, 8, 101, 5))),
    ),
    "cap_first_loss": Varied(
        "A GPT that has learned nothing gives each of {n} characters about the same probability. Its loss is the mean "
        "of -ln(probability of the right character). How large is it?",
        "{loss:.3f}",
        "ln {n}.",
        _each("n", "loss", of=tuple((n, math.log(n)) for n in (32, 64, 26))),
    ),
    "interview_split": Varied(
        "Build {built} as {by} after which each rank keeps only {kept}. How many times the bytes of a real {built} "
        "does a rank send?",
        "{right}",
        "{sent}",
        _each(
            "built",
            "by",
            "kept",
            "right",
            "sent",
            of=(
                (
                    "reduce_scatter",
                    "a ring all_reduce",
                    "its chunk",
                    "2",
                    "2 (p - 1) chunks instead of p - 1. The second half brings every chunk to every rank.",
                ),
                (
                    "all_to_all on 8 ranks",
                    "a ring all_gather of everyone's vector N",
                    "the chunks that are for it",
                    "8",
                    "7 N instead of 7/8 N: each rank passes on 7 whole vectors, where it should send 7 chunks of N/8.",
                ),
                (
                    "reduce_scatter on 4 ranks",
                    "an exchange of whole vectors, each rank's to each other one,",
                    "its chunk of the sum",
                    "4",
                    "3 N instead of 3/4 N: a rank needs one chunk of four, and is sent all of them.",
                ),
            ),
        ),
    ),
    "interview_overlap": Varied(
        "`work = dist.all_reduce(g, async_op=True)`, then {other} ms of backward pass that does not need g, then "
        "`work.wait()`. The all_reduce alone takes {alone} ms. How long do the three lines take?",
        "{longer}e-3",
        "The longer of the two hides the other.",
        _each("other", "alone", "longer", of=((60, 80, 80), (90, 70, 90), (50, 120, 120))),
    ),
}


def variant(question: Question, number: int) -> Question:
    """The question of variant `number`, from 1, which is the chapter's own."""
    if number > 1 and isinstance(question, Statement) and question.name in STATED:
        text, true, why = STATED[question.name][number - 2]
        return replace(question, text=text, true=true, why=why)
    if number > 1 and isinstance(question, Choose):
        answers = question.answers[number - 1 :] + question.answers[: number - 1]
        return replace(question, answers=answers, right=answers.index(question.answers[question.right]))
    if number == 1 or not isinstance(question, Number) or question.name not in VARIED:
        return question
    made = VARIED[question.name]
    numbers = made.numbers[number - 1]
    right = Answer(made.right.format(**numbers), made.why.format(**numbers))
    return replace(question, text=made.text.format(**numbers), right=right, wrong=(), p=None)
