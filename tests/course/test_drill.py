"""The interviewer draws each topic once in a round, and times the answer."""

from itertools import chain, repeat

from course import drill


def test_each_topic_comes_once_in_a_round_and_the_last_answer_is_timed(capsys):
    clock = chain([0.0, 95.0, 95.0, 300.0, 300.0, 310.0], repeat(310.0))
    for _ in drill.TOPICS:
        drill.tell_me_about(now=lambda: next(clock))
    said = capsys.readouterr().out
    assert sorted(line for line in said.splitlines() if line.startswith("Tell")) == sorted(
        f"Tell me about {topic} Two minutes, aloud." for topic in drill.TOPICS
    )
    assert [line for line in said.splitlines() if line.startswith("You")] == [
        "You took 1:35.",
        "You took 3:25, 85 s too long: leave out what nobody asked.",
        "You took 0:10.",
        *["You took 0:00."] * (len(drill.TOPICS) - 4),
    ]
