"""The collectives of a compiled XLA program, read from its text: what each of them is, and which ranks form a group.

    calls(jax.jit(f).lower(x).compile().as_text())     a Call for each, in the order in which the program runs them

The text (HLO, "high-level operations") has a line for each instruction, and three ways to write groups down.

Left out: the pairs of a start and a done that GPUs and TPUs run (ScheduleError), programs with replicas and partitions
at once, how often a loop runs, and all other instructions; `collectives.compiled` makes a picture.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from collectives.errors import ScheduleError

__all__ = ["Call", "Program", "calls"]

Groups = tuple[tuple[int, ...], ...]

KNOWN = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
UNKNOWN = re.compile(r"(collective-broadcast|ragged-all-to-all|(all|reduce|collective|async)-[a-z-]*start)$")
REDUCING = ("all-reduce", "reduce-scatter")
HOW = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min"}

PARENTHESES = r"\((?:[^()]|\([^()]*\))*\)"  # of a tuple's shape, or round operands
COMPUTATION = re.compile(r"(?P<entry>ENTRY )?%(?P<name>\S+) \(.*\{$")
INSTRUCTION = re.compile(
    rf"\s+(?P<root>ROOT )?%(?P<name>\S+) = (?P<shape>{PARENTHESES}|\S+) "
    rf"(?P<op>[a-z][\w-]*)(?P<operands>{PARENTHESES})(?P<rest>.*)"
)
CALLED = re.compile(r"\b(?:body|calls|to_apply|true_computation|false_computation)=%([^\s,]+)")
ARRAY = re.compile(r"\b([a-z]+)(\d*)\w*\[([\d,]*)\]")
LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{((?:\{[\d,]*\},?)*)\}")
COUNTED = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
MESH = re.compile(r"replica_groups=mesh\[((?:'\w+'=\d+,?)+)\] \{((?:'\w+',?)+)\}")


class Call(NamedTuple):
    """One collective of a program.

    op        its name, spelled as everywhere else here: "all_reduce"; "collective_permute" is a ppermute
    groups    the ranks (XLA's devices) that work together; for a collective_permute, the pairs (source, destination)
    nbytes    bytes that one rank hands in
    how       "sum", "max" ... where it reduces, else ""
    name      the instruction's name in the text
    operands  the instructions that make what is handed in, as (name, which part of its tuple)
    sizes     bytes of each of them on one rank
    in_loop   whether a loop runs it, perhaps many times
    """

    op: str
    groups: Groups
    nbytes: int
    how: str
    name: str
    operands: tuple[tuple[str, int], ...]
    sizes: tuple[int, ...]
    in_loop: bool

    def __repr__(self) -> str:
        if self.op == "collective_permute":
            who = " ".join(f"{src}->{dst}" for src, dst in self.groups)
        else:
            who = " ".join(f"{{{','.join(map(str, group))}}}" for group in self.groups)
        return f"{self.op}{f' ({self.how})' if self.how else ''} of {self.nbytes} bytes: {who}"


def calls(text: str) -> list[Call]:
    """The collectives of a compiled program. ScheduleError if it is not one, or has a collective not known here."""
    return Program(text).calls


class _Line(NamedTuple):
    """An instruction: %name = shape op(operands)rest."""

    name: str
    op: str
    shape: str
    operands: tuple[str, ...]
    rest: str
    root: bool


class Program:
    """What the text says: `ranks`, `calls`, and the `parameters`, by the names of their instructions."""

    def __init__(self, text: str) -> None:
        self._computations, entry = _read(text)
        self._lines = {line.name: line for lines in self._computations.values() for line in lines}
        self.ranks = _devices(text)
        self.parameters = {line.name for line in self._computations[entry] if line.op == "parameter"}
        self.calls = [self._call(line, in_loop) for line, in_loop in self._in_order(entry)]

    def _in_order(self, name: str, in_loop: bool = False) -> Iterator[tuple[_Line, bool]]:
        """The collectives in the order in which they run; those in a loop or a call come where it is."""
        for line in self._computations.get(name, ()):
            if UNKNOWN.match(line.op):
                raise ScheduleError(f"%{line.name} is a {line.op}, which is not read here; compile for CPU devices")
            if line.op in KNOWN:
                yield line, in_loop
                continue
            for called in CALLED.findall(line.rest):
                yield from self._in_order(called, in_loop or line.op == "while")

    def _call(self, line: _Line, in_loop: bool) -> Call:
        sizes = tuple(_nbytes(self._lines[name].shape) for name in line.operands)
        applied = self._computations[CALLED.findall(line.rest)[0]] if line.op in REDUCING else ()
        how = next((HOW.get(each.op, each.op) for each in applied if each.root), "")
        operands = tuple(map(self._part, line.operands))
        op = line.op.replace("-", "_")
        return Call(op, _groups(line, self.ranks), sum(sizes), how, line.name, operands, sizes, in_loop)

    def _part(self, name: str) -> tuple[str, int]:
        """Instruction and part behind a name: for get-tuple-element, a part of its tuple; else the whole, part 0."""
        line = self._lines[name]
        index = re.search(r"\bindex=(\d+)", line.rest) if line.op == "get-tuple-element" else None
        return (line.operands[0], int(index[1])) if index else (name, 0)


def _read(text: str) -> tuple[dict[str, list[_Line]], str]:
    """Name -> lines of every computation, and the name of the one that is the program."""
    found: dict[str, list[_Line]] = {}
    entry, lines = "", list[_Line]()
    for row in text.splitlines():
        if head := COMPUTATION.match(row):
            lines = found.setdefault(head["name"], [])
            entry = head["name"] if head["entry"] else entry
        elif told := INSTRUCTION.match(row):
            operands = tuple(re.findall(r"%([^\s,()]+)", told["operands"]))
            lines.append(_Line(told["name"], told["op"], told["shape"], operands, told["rest"], bool(told["root"])))
    if not entry:
        raise ScheduleError(
            "this is not the text of a compiled program: take jax.jit(f).lower(x).compile().as_text(); "
            "lower(x) alone is what the compiler starts from"
        )
    return found, entry


def _devices(text: str) -> int:
    counts = {key: int(count) for key, count in re.findall(r"\b(replica_count|num_partitions)=(\d+)", text)}
    replicas, partitions = counts.get("replica_count", 1), counts.get("num_partitions", 1)
    if replicas > 1 and partitions > 1:
        raise ScheduleError(f"the program has {replicas} replicas of {partitions} partitions; only one is read here")
    return replicas * partitions


def _nbytes(shape: str) -> int:
    """Bytes of all arrays in a shape: 64 for "f32[4,4]{1,0}"."""
    total = 0
    for kind, bits, lengths in ARRAY.findall(shape):
        size = 1 if kind == "pred" else int(bits or 8) // 8
        total += size * math.prod(int(length) for length in lengths.split(",") if length)
    return total


def _groups(line: _Line, devices: int) -> Groups:
    """A list {{0,1},{2,3}}; all devices reshaped, transposed and cut, [2,2]<=[2,2]T(1,0); or axes of a mesh."""
    if listed := LISTED.search(line.rest):
        found = [tuple(map(int, group.split(","))) for group in re.findall(r"\{([\d,]+)\}", listed[1])]
        return tuple(found) or (tuple(range(devices)),)
    if counted := COUNTED.search(line.rest):
        cut, grid, turned = ([int(each) for each in part.split(",")] if part else None for part in counted.groups())
        return _rows(np.arange(devices).reshape(grid or devices).transpose(turned).reshape(cut or devices))
    if mesh := MESH.search(line.rest):
        axes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", mesh[1])}
        names, along = [*axes], re.findall(r"'(\w+)'", mesh[2])
        turned = [names.index(name) for name in [*(name for name in names if name not in along), *along]]
        counted_off = np.arange(devices).reshape([*axes.values()]).transpose(turned)
        return _rows(counted_off.reshape(-1, math.prod(axes[name] for name in along)))
    raise ScheduleError(f"%{line.name}: the groups of this {line.op} are written in a way that is not read here")


def _rows(grid: np.ndarray) -> Groups:
    return tuple(map(tuple, grid.tolist()))
