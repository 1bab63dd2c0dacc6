"""What a run on a network of one's choice looks like: latency in the Timeline, a Race in measured seconds, links that
carried what they carried. The runs are made by hand, every step as long as it was predicted; real ones are in
tests/launch/test_network.py.
"""

from collectives import Link, Network, Run, Topology, all_reduce
from collectives.played import Carried
from collectives.timed import Clock, Match, Timed
from widgets import Race, Timeline, TopologyMap


def played(algorithm: str, network: Network | Topology, carried: Carried | None = None) -> Run:
    """Like a run of four ranks that was recorded on that network, every step as long as it was predicted."""
    schedule = getattr(all_reduce, algorithm)(ranks=4)
    steps, events, now = [], [], 0.0
    seconds = schedule.cost(nbytes=4e6, network=network).step_seconds
    for step, long in zip(schedule.steps, seconds, strict=True):
        steps.append((step.phase, step.caption, list(step.transfers), []))
        for src, dst, count in sorted({(t.src, t.dst, t.count) for t in step.transfers}):
            match = Match(len(events) // 2, f"message #{len(events) // 2 + 1} from rank {src} to rank {dst}", 2)
            nbytes = round(count * 4e6 / schedule.chunks)
            events.append(Timed(src, "send", dst, nbytes, 3, "dist.send(x, dst)", match, now, now, now, now, None))
            ended = now + long
            events.append(Timed(dst, "recv", src, nbytes, 4, "dist.recv(y, src)", match, now, now, now, ended, None))
        now += long
    sent = schedule.counts(nbytes=4e6)
    known = {
        "title": f"your {algorithm}",
        "counts": sent,
        "events": events,
        "built_ins": (),
        "unmatched": (),
        "dropped": 0,
    }
    known |= {"start_values": [], "values": [[]] * len(steps), "ways": [[""] * len(step[2]) for step in steps]}
    known |= {"step_seconds": list(seconds), "network": network, "carried": carried}
    return Run.from_steps("all_reduce", algorithm, 4, schedule.chunks, steps, **known)


ETHERNET = Network(alpha=2e-3, beta=1 / 25e6, name="ethernet")
MACHINES = Topology.machines(2, gpus=2, inside=Link(1e-3, 1 / 100e6), between=Link(4e-3, 1 / 12.5e6), nic="machine")
RING = Carried(tuple(tuple(6_000_000 * (dst == (src + 1) % 4) for dst in range(4)) for src in range(4)))


def test_a_message_says_what_of_its_time_was_latency(show):
    page = show(Timeline(played("ring", ETHERNET), chosen=10))
    said = page.inner_text(".rs-what")
    assert said.startswith("Rank 1: recv from rank 0, 1 MB, line 4. On this network: 2 ms latency, then 40 ms for its")
    assert page.inner_text(".rs-parts") == "latency, before the bytes" and page.is_visible(".rs-parts")
    assert page.locator("path.rs-latency").first.get_attribute("d")
    assert "on ethernet: 25 MB/s, 2 ms" in page.inner_text(".rs-timeline")


def test_two_runs_race_in_the_seconds_that_were_measured(show):
    page = show(Race(played("naive", ETHERNET), played("ring", ETHERNET)))
    assert "measured on ethernet" in page.inner_text(".ringside")
    page.focus(".rs-scrub input")
    for _ in range(3):  # three steps of the ring, 42 ms each, while naive is in its first, of 162 ms
        page.keyboard.press("ArrowRight")
    assert "126 ms: your naive step 1 of 6, your ring step 3 of 6." in page.text_content(".rs-caption")


def race_on_machines(show, error: float) -> list[str]:
    """What is said of naive and ring at their end, if each of two machines' clocks is known with that error."""
    runs = [played(name, ETHERNET) for name in ("naive", "ring")]
    for run in runs:
        run.network, run.clocks = None, (Clock((0, 1), -3600.0, error), Clock((2, 3), 7200.0, error))
    page = show(Race(*runs))
    assert "measured on 2 machines" in page.inner_text(".ringside")
    page.focus(".rs-scrub input")
    page.keyboard.press("End")
    return page.locator(".rs-won").all_text_contents()


def test_a_race_on_several_machines_has_a_winner_only_beyond_what_their_clocks_leave_open(show):
    assert race_on_machines(show, 0.001) == ["972 ms ± 2 ms · 3.9× as long", "252 ms ± 2 ms · fastest"]
    assert race_on_machines(show, 0.2) == [
        "972 ms ± 400 ms · too close to tell",
        "252 ms ± 400 ms · too close to tell",
    ]


def test_the_map_shows_what_the_links_of_the_room_carried(show):
    page = show(TopologyMap(played("ring", MACHINES, RING)))
    said = page.inner_text(".ringside")
    assert "What the ranks sent: messages as they were, built-ins as the steps" in said
    assert "Busiest link: NIC (network card) of machine 0 out, 6 MB, busy for 480 ms, and 3 more like it." in said
