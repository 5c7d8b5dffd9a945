"""When a signal ends a run: at once, or at the end of what changes the run's state."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.training.interruption import Interrupted, Interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of the process are there again after every test."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


def interruption(processes: int = 1, elsewhere: bool = False) -> Interruption:
    """That of one of several processes; `elsewhere`: another one has received a signal."""
    told: Any = SimpleNamespace(count=processes, any=lambda flag: flag or elsewhere)
    return Interruption(told)


@pytest.mark.parametrize("number", SIGNALS)
def test_outside_of_a_change_a_signal_ends_the_run_at_once(number: signal.Signals) -> None:
    done = []
    with pytest.raises(Interrupted, match=number.name) as raised, interruption():
        done.append("before")
        signal.raise_signal(number)
        done.append("after")
    assert done == ["before"] and raised.value.number == number


def test_a_change_is_made_whole_before_the_run_ends() -> None:
    done = []
    with pytest.raises(Interrupted), interruption() as one:
        with one.held():
            signal.raise_signal(signal.SIGTERM)
            with one.held():
                done.append("inner")
            done.append("outer")
        done.append("after")
    assert done == ["inner", "outer"]


def test_a_second_signal_ends_even_a_change() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt) as raised, interruption() as one, one.held():
        signal.raise_signal(signal.SIGINT)
        done.append("one")
        signal.raise_signal(signal.SIGINT)
        done.append("two")
    assert done == ["one"] and not isinstance(raised.value, Interrupted)


def test_a_signal_of_an_earlier_block_is_forgotten() -> None:
    one = interruption()
    with pytest.raises(Interrupted), one:
        signal.raise_signal(signal.SIGTERM)
    with one, one.held():
        pass


def test_processes_stop_together_after_a_change() -> None:
    done = []
    with pytest.raises(Interrupted), interruption(2) as one:
        signal.raise_signal(signal.SIGTERM)  # the others wait in a collective call
        done.append("on")
        with one.held():
            done.append("changed")
        done.append("after")
    with pytest.raises(Interrupted, match="SIGTERM"), interruption(2, elsewhere=True) as one:
        with one.held():
            done.append("here, too")
        done.append("after")
    assert done == ["on", "changed", "here, too"]
