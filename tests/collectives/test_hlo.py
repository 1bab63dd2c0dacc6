"""Compiled XLA programs, read and drawn: real ones, compiled for this, and what they really give on real devices."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from collectives import ScheduleError, load
from collectives.compiled import program
from collectives.hlo import calls

XLA = Path(__file__).with_name("xla.py")
ALL = "{0,1,2,3}"


@pytest.fixture(scope="module")
def compiled():
    if not find_spec("jax"):
        pytest.skip("JAX, an extra, is not installed")
    run = subprocess.run([sys.executable, XLA], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    "name, said",
    [
        ("psum", [f"all_reduce (sum) of 16 bytes: {ALL}"]),
        ("pmax", [f"all_reduce (max) of 16 bytes: {ALL}"]),
        ("all_gather", [f"all_gather of 16 bytes: {ALL}"]),
        ("psum_scatter", [f"reduce_scatter (sum) of 16 bytes: {ALL}"]),
        ("all_to_all", [f"all_to_all of 16 bytes: {ALL}"]),
        ("pairs", ["collective_permute of 16 bytes: 0->1 1->2"]),
        ("passed_on", ["collective_permute of 16 bytes: 0->1 1->2 2->3 3->0"] * 3),
        ("summed_in_two", [f"reduce_scatter (sum) of 16 bytes: {ALL}", f"all_gather of 4 bytes: {ALL}"]),
        ("halves", ["all_reduce (sum) of 16 bytes: {0,3} {1,2}"]),
        ("two_in_one", [f"all_reduce (sum) of 32 bytes: {ALL}"]),
        ("two_layers", ["all_reduce (sum) of 64 bytes: {0,1} {2,3}", "all_reduce (sum) of 256 bytes: {0,2} {1,3}"]),
        ("loop", ["collective_permute of 16 bytes: 0->1 1->2 2->3 3->0"]),
        ("alone", []),
    ],
)
def test_what_a_program_says(compiled, name, said):
    assert list(map(repr, calls(compiled[name]["text"]))) == said


@pytest.mark.parametrize(
    "name", ["psum", "all_gather", "psum_scatter", "all_to_all", "pairs", "passed_on", "summed_in_two", "halves"]
)
def test_the_picture_ends_with_what_the_devices_had(compiled, name):
    """Its letters, with the numbers that they stood for put in, are the numbers that JAX returned."""
    run, x = program(compiled[name]["text"]), np.array(compiled[name]["x"])
    held = run.states(-1).cells[run.buffers[-1]]
    letters = 1 + max(chunk for cell in held.flat for _, chunk in cell.origins)
    pieces = x.reshape(4, letters, -1)  # letter c of rank r is that part of its x
    for rank, row in enumerate(compiled[name]["y"]):
        parts = [sum(pieces[origin] for origin in cell.origins) for cell in held[rank] if cell]
        assert np.concatenate(parts or [np.zeros(4)]).tolist() == row


def test_a_collective_is_an_effect_and_sends_nothing_that_anyone_has_seen(compiled):
    run = program(compiled["summed_in_two"]["text"])
    assert [step.effect for step in run.steps] == [True, True]
    assert run.title == "compiled: reduce_scatter and all_gather"
    assert run.built_ins == (("reduce_scatter", 16, 4), ("all_gather", 4, 4))
    assert (run.counts().messages, run.counts().total_bytes) == (0, 0)
    run.check()


def test_what_is_computed_between_two_collectives_has_letters_of_its_own(compiled):
    run = program(compiled["two_layers"]["text"])
    assert [(step.phase, step.effect) for step in run.steps] == [
        ("compute", False),
        ("all_reduce (built-in)", True),
        ("compute", False),
        ("all_reduce (built-in)", True),
    ]
    last = run.states(-1).cells[run.buffers[-1]]
    assert [str(cell) for cell in last[1]] == ["b1+d1", "b2+d2"]  # two gradients in one call
    run.check()


def test_what_is_in_a_loop_is_shown_once_and_says_so(compiled):
    run = program(compiled["loop"]["text"])
    assert "in a loop" in run.steps[-1].caption and len(run.steps) == 2


def test_a_maximum_is_drawn_as_one(compiled):
    run = program(compiled["pmax"]["text"])
    assert set(run.ways(0)) == {"max"}


def test_a_file_keeps_it(compiled, tmp_path):
    run = program(compiled["two_layers"]["text"])
    run.save(tmp_path / "two.json")
    kept = load(tmp_path / "two.json")
    assert kept.title == run.title and kept.states(-1) == run.states(-1)
    assert [step.effect for step in kept.steps] == [step.effect for step in run.steps]


PROGRAM = """HloModule jit_f, is_scheduled=true, num_partitions=8

ENTRY %main.2_spmd (param: f32[2]) -> f32[4] {{
  %param = f32[2]{{0}} parameter(0)
  ROOT %gathered = f32[4]{{0}} {op}(%param), channel_id=1, {groups}, dimensions={{0}}, use_global_device_ids=true
}}
"""


@pytest.mark.parametrize(
    "groups, read",
    [
        ("replica_groups={{0,4},{1,5},{2,6},{3,7}}", [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ("replica_groups={}", [(0, 1, 2, 3, 4, 5, 6, 7)]),
        ("replica_groups=[2,4]<=[8]", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ("replica_groups=[4,2]<=[2,2,2]T(0,2,1)", [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=2,'axis_2'=2] {'axis_2'}", [(0, 1), (2, 3), (4, 5), (6, 7)]),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=2,'axis_2'=2] {'axis_1'}", [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ("replica_groups=mesh['axis_0'=2,'axis_1'=2,'axis_2'=2] {'axis_0','axis_2'}", [(0, 1, 4, 5), (2, 3, 6, 7)]),
    ],
)
def test_groups_however_they_are_written(groups, read):
    """The three ways in which XLA writes them for eight CPU devices, and the empty list, which means all."""
    (call,) = calls(PROGRAM.format(op="all-gather", groups=groups))
    assert list(call.groups) == read


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "not the text of a compiled program"),
        (PROGRAM.format(op="all-gather-start", groups="replica_groups={}"), "compile for CPU devices"),
        (PROGRAM.format(op="all-gather", groups="replica_groups=mesh['x'=8] {'x':(1)2}"), "a way that is not read"),
        (PROGRAM.format(op="copy", groups=""), "has no collectives"),
        (PROGRAM.format(op="all-gather", groups="").replace("num_", "replica_count=2, num_"), "2 replicas of 8"),
    ],
)
def test_what_cannot_be_read_is_said(text, words):
    with pytest.raises(ScheduleError, match=words):
        program(text)


def test_a_program_that_was_not_compiled_is_said(compiled):
    with pytest.raises(ScheduleError, match=r"lower\(x\) alone"):
        calls(compiled["not_compiled"]["text"])
