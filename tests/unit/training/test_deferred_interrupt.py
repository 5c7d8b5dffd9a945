"""Ctrl-C while a library does what must not be interrupted: it ends the program afterwards."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from colearn.training.hosts.ray_workers import deferred_interrupt

pytestmark = pytest.mark.usefixtures("ctrl_c")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_block_ends_before_the_interruption_does() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), deferred_interrupt():
        interrupt()
        done = True
    assert done


def test_a_second_interruption_ends_the_block_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupt():
        interrupt()
        interrupt()
        raise AssertionError("the block went on")


def test_an_error_of_the_block_does_not_swallow_the_interruption() -> None:
    with pytest.raises(KeyboardInterrupt) as ended, deferred_interrupt():
        interrupt()
        raise OSError("it failed, too")
    assert isinstance(ended.value.__context__, OSError)


def test_a_handler_of_the_programs_own_is_called_once_after_the_block() -> None:
    called: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    try:
        with deferred_interrupt():
            interrupt()
            assert called == []
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupt():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_another_thread_leaves_the_main_threads_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with deferred_interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
