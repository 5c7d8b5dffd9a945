"""Time use of an iteration, from spans whose seconds are added up by hand."""

import threading

import pytest

from colearn.contract.timeline import BusyTime, Timed, Timeline, updates
from colearn.runs.record.time_use import bottleneck, shares, time_use

# the generator samples 0-4 and 5-6, ann updates 4-8 and bob 5-10, nobody works from 10 to 12
SPANS = [
    BusyTime("generator", "generate", 0, 4),
    BusyTime("generator", "generate", 5, 6),
    BusyTime("generator", "transfer", 6, 6.5),
    BusyTime("ann", "update", 4, 8),
    BusyTime("ann", "update", 5, 7),  # within the other: a pass of an update
    BusyTime("bob", "update", 5, 10),
]
EXPECTED = {
    "seconds/generate/generator": 5.0,
    "seconds/transfer/generator": 0.5,
    "seconds/wait/generator": 6.5,
    "seconds/update/ann": 4.0,
    "seconds/wait/ann": 8.0,
    "seconds/update/bob": 5.0,
    "seconds/wait/bob": 7.0,
    "seconds/idle": 2.0,
    "seconds/overlap": 3.0,  # from 5 to 8
}


def test_seconds_are_those_counted_by_hand():
    assert time_use(SPANS, ["generator", "ann", "bob"], 12.0) == EXPECTED


def test_who_did_nothing_waited_all_the_time():
    assert time_use([], ["ann"], 3.0) == {
        "seconds/wait/ann": 3.0,
        "seconds/idle": 3.0,
        "seconds/overlap": 0.0,
    }


def test_shares_weigh_iterations_by_their_length():
    one = {"seconds/rollout": 1.0, "seconds/update": 2.0, "seconds/update/ann": 3.0}
    two = {"seconds/rollout": 0.5, "seconds/update": 0.5, "seconds/update/ann": 0.0}
    lines = [
        one | {"seconds/idle": 0.0, "seconds/overlap": 0.0},
        two | {"seconds/idle": 1.0, "seconds/overlap": 0.0},
        {"seconds/rollout": 9.0, "seconds/update": 9.0},  # written before there was a timeline
    ]
    assert shares(lines) == {"update/ann": 0.75, "idle": 0.25, "overlap": 0.0}
    assert shares(lines[2:]) == {}


def test_the_line_names_who_works_longest():
    parts = {key.removeprefix("seconds/"): value / 12 for key, value in EXPECTED.items()}
    assert bottleneck(parts) == (
        "bottleneck: generator generates 42% of an iteration; bob updates 42%, ann updates 33%, "
        "task steps and bookkeeping 17%, generator receives weights 4%; 25% overlaps"
    )
    assert bottleneck({"idle": 0.9, "overlap": 0.0, "update/ann": 0.1}) == (
        "bottleneck: task steps and bookkeeping 90% of an iteration; ann updates 10%; 0% overlaps"
    )
    assert bottleneck({}) == ""


def test_a_timeline_cuts_work_at_the_ends_of_an_iteration():
    ticks = iter([1.0, 3.0, 4.0, 9.0])
    timeline = Timeline(lambda: next(ticks))
    with timeline.span("ann", "update"):  # from 1 to 3
        pass
    with timeline.span("generator", "generate"):  # from 4, still running at 5
        assert timeline.take(2.0, 5.0) == [
            BusyTime("ann", "update", 2.0, 3.0),
            BusyTime("generator", "generate", 4.0, 5.0),
        ]
    assert timeline.take(5.0, 8.0) == [BusyTime("generator", "generate", 5.0, 8.0)]
    assert timeline.take(8.0, 20.0) == [BusyTime("generator", "generate", 8.0, 9.0)]
    assert timeline.take(8.0, 20.0) == []


class Worker(Timed):
    @updates
    def work(self, gate):
        """Wait for the others."""
        gate.wait(600)


def test_threads_overlap_in_a_timeline():
    timeline, gate = Timeline(), threading.Barrier(2)
    workers = [Worker(), Worker()]
    for name, worker in zip(("ann", "bob"), workers, strict=True):
        worker.timeline, worker.timed_as = timeline, name
    threads = [threading.Thread(target=one.work, args=(gate,)) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ann, bob = sorted(timeline.take(0.0, float("inf")), key=lambda span: span.who)
    assert (ann.who, bob.who) == ("ann", "bob")
    assert min(ann.end, bob.end) > max(ann.start, bob.start)


def test_an_object_without_a_timeline_works_alike():
    gate = threading.Barrier(1)
    assert Worker().work(gate) is None


@pytest.mark.parametrize("part", ["seconds/rollout", "seconds/update"])
def test_a_line_without_its_length_is_not_counted(part):
    line = {"seconds/rollout": 1.0, "seconds/update": 2.0, "seconds/idle": 0.0}
    assert shares([{key: value for key, value in line.items() if key != part}]) == {}
