"""Ctrl-C while a library does what must not be interrupted: it ends the program afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from colearn.training.hosts.deferred_interrupt import deferred_interrupt

pytestmark = pytest.mark.usefixtures("ctrl_c")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def until_interrupted(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


def test_the_block_ends_before_the_interruption_does_and_the_user_is_told(
    capfd: pytest.CaptureFixture[str],
) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), deferred_interrupt("the start", 20.0):
        interrupt()
        done = True
    assert done
    assert capfd.readouterr().err == (
        "note: SIGINT: ends after the start, within 20 s; a second signal ends at once\n"
    )


def test_a_second_interruption_ends_the_block_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupt("the start", 20.0):
        interrupt()
        interrupt()
        raise AssertionError("the block went on")


def test_after_its_time_an_interruption_ends_the_block() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupt("the start", 0.1):
        interrupt()
        until_interrupted(60.0)
        raise AssertionError("the block went on")


def test_an_error_of_the_block_does_not_swallow_the_interruption() -> None:
    with pytest.raises(KeyboardInterrupt) as ended, deferred_interrupt("the start", 20.0):
        interrupt()
        raise OSError("it failed, too")
    assert isinstance(ended.value.__context__, OSError)


def test_a_handler_of_the_programs_own_is_called_once_after_the_block() -> None:
    called: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    try:
        with deferred_interrupt("the start", 0.05):
            interrupt()
            assert called == []
        time.sleep(0.2)  # the time of the first is over
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupt("the start", 20.0):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_another_thread_leaves_the_main_threads_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with deferred_interrupt("the start", 20.0):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
