"""Functions that are the same but for names and layout are found, and others are not."""

from pathlib import Path

from course.teach import alike

SHIFT = """
def shift(x):
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""
RENAMED = '''
import torch

def shift(x):
    """Mine."""
    inbox = torch.empty_like(x)  # room
    w = dist.isend( x, (rank+1) % world_size )
    dist.recv(inbox,
              (rank - 1) % world_size)
    w.wait()
    return inbox
'''
OTHER = SHIFT.replace("rank - 1", "rank + world_size - 1").replace("torch.empty_like(x)", "x.clone()")


def test_names_comments_and_layout_are_put_aside():
    assert alike.nodes(SHIFT) == alike.nodes(RENAMED) != alike.nodes(OTHER)
    assert alike.nodes(SHIFT) != alike.nodes(SHIFT.replace("isend", "irecv"))
    assert alike.nodes(SHIFT) != alike.nodes(SHIFT.replace("+ 1", "+ 2"))
    assert alike.nodes(SHIFT) != alike.nodes(SHIFT.replace("return arriving", "return x"))
    assert alike.nodes("def shift(:") == ()


def test_who_is_alike_is_said():
    texts = {"anna": {"shift": SHIFT}, "ben": {"shift": RENAMED}, "carla": {"shift": OTHER}, "dan": {"swap": SHIFT}}
    assert alike.sentences(texts) == ["shift: anna and ben handed in the same function, names and layout aside"]
    assert alike.sentences({"anna": {"shift": SHIFT}, "ben": {"shift": SHIFT}}) == [
        "shift: anna and ben handed in the same function, letter for letter"
    ]


def test_our_own_solution_is_known():
    said = ["shift: anna handed in our solution, names and layout aside"]
    assert alike.sentences({"anna": {"shift": solution("shift").replace("arriving", "inbox")}}) == said


def test_a_long_function_with_a_line_changed_is_nearly_the_same():
    mine = solution("ring_any_length").replace("ring_any_length", "f")
    theirs = mine.replace("torch.empty_like(mine)", "mine.clone()")
    (said,) = alike.sentences({"anna": {"f": mine}, "ben": {"f": theirs}})
    assert said.startswith("f: anna and ben are alike in 9") and said.endswith("% of their nodes")
    short = SHIFT.replace("return arriving", "return arriving + 0")
    assert alike.sentences({"anna": {"f": SHIFT}, "ben": {"f": short}}) == []


def solution(name):
    return (Path(alike.__file__).parents[1] / "solutions" / f"{name}.py").read_text()
