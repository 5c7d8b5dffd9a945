"""Guard around a user's code: global switches of the process that the code changes are put back or
named.

Switches that are read within a microsecond are compared after every call (`guarded`); all of them,
and the environment variables, once per iteration and after an import (`SwitchState`). The global
generators of Python and numpy are not compared, because the library does not draw from them.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from colearn.text.notes import note_once

_UNKNOWN = object()
_ENTERED: list[Any] = []
"""Contexts that put the inference mode back; one that is deleted would undo it."""


class Switch(NamedTuple):
    """A global switch."""

    name: str
    """Its name in notes."""
    read: Callable[[], Any]
    put_back: Callable[[Any], object] | None
    """None: a change is only named."""
    initial: Any = _UNKNOWN
    """Its value right after the import of its library, if known."""


Found = tuple[list[str], list[str]]
"""Names of changed switches: those that were put back, and those that cannot be put back."""


class Before:
    """The values of switches before a call."""

    def __init__(self, switches: Sequence[Switch]) -> None:
        self._switches = switches
        self._values = [switch.read() for switch in switches]

    def put_back(self, later: Sequence[Switch] = ()) -> Found:
        """Puts changed switches back. `later`: the switches of a library that was imported during
        the call; those with an unknown initial value are left as they are."""
        if not later and [switch.read() for switch in self._switches] == self._values:
            return [], []
        known = [switch for switch in later if switch.initial is not _UNKNOWN]
        restored, named = list[str](), list[str]()
        for switch, before in (
            *zip(self._switches, self._values, strict=True),
            *((switch, switch.initial) for switch in known),
        ):
            if switch.read() == before:
                continue
            if switch.put_back is None:
                named.append(switch.name)
            else:
                switch.put_back(before)
                restored.append(switch.name)
        return restored, named


class _Calls:
    """Calls of user code that run now. Switches of the process are compared when the last of them
    returns, because another call may change a switch for its own duration."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.before = Before(())
        self.torch: Any = None
        """torch, if it had been imported when the first of these calls began."""


_calls = _Calls()


class guarded:
    """Context for a call of user code. Afterwards, the switches that the call changed are put back,
    and a note names them and `who`."""

    __slots__ = ("_own", "_torch", "_who")

    def __init__(self, who: str) -> None:
        self._who = who

    def __enter__(self) -> None:
        torch = self._torch = sys.modules.get("torch")
        self._own = Before(_of_thread(torch, threading.current_thread() is threading.main_thread()))
        with _calls.lock:
            if not _calls.running:
                _calls.before, _calls.torch = Before(_of_process(torch)), torch
            _calls.running += 1

    def __exit__(self, *raised: object) -> None:
        now = sys.modules.get("torch")
        restored, named = self._own.put_back(_torch_of_thread(now) if self._torch is None else ())
        with _calls.lock:
            _calls.running -= 1
            if not _calls.running:
                later = _torch_of_process(now) if _calls.torch is None else ()
                of_process = _calls.before.put_back(later)
                restored, named = restored + of_process[0], named + of_process[1]
        if restored or named:
            _tell(self._who.rstrip(":"), restored, named)


class SwitchState:
    """The values of all switches, and the environment variables. Reading them takes some tens of
    microseconds."""

    def __init__(self, *, importing: bool = False, generating: bool = False) -> None:
        """`importing`: whether a module is about to be imported. Libraries add filters of single
        warnings at their import, which are then left in place. `generating`: whether other threads
        generate meanwhile; these change some switches for their own duration."""
        self._torch = sys.modules.get("torch")
        switches = _all(self._torch, importing)
        if not generating:
            switches = (*switches, *_of_generation(self._torch))
        self._before, self._environment = Before(switches), os.environ.copy()

    def check(self, who: str) -> None:
        """Puts changed switches back, and names these and changed environment variables, without
        values."""
        later = () if self._torch is not None else _of_torch(sys.modules.get("torch"))
        _tell(who, *self._before.put_back(later))
        after = os.environ.copy()
        if changed := self._environment.items() ^ after.items():
            names = ", ".join(sorted({name for name, _ in changed}))
            note_once(f"{who} changed environment variables: {names}")
        self._environment = after


@contextmanager
def checked(who: str, *, importing: bool = False, generating: bool = False) -> Iterator[None]:
    """Context for user code that runs seldom: as `guarded`, for all switches and the environment
    variables. `importing`, `generating`: as for `SwitchState`."""
    before = SwitchState(importing=importing, generating=generating)
    try:
        yield
    finally:
        before.check(who)


def _tell(who: str, restored: list[str], named: list[str]) -> None:
    if restored:
        note_once(f"{who} changed {', '.join(restored)} for the whole process; put back")
    if named:
        note_once(
            f"{who} changed {', '.join(named)} for the whole process, from which dropout is drawn"
        )


@cache
def _of_thread(torch: Any, main: bool) -> tuple[Switch, ...]:
    return (*_torch_of_thread(torch), *(_SIGNALS if main else ()))


@cache
def _of_process(torch: Any) -> tuple[Switch, ...]:
    return (*_torch_of_process(torch), *_STREAMS, _FOLDER, _FILTERS)


@cache
def _of_torch(torch: Any) -> tuple[Switch, ...]:
    if torch is None:
        return ()
    device = Switch(
        "torch.set_default_device",
        torch.get_default_device,
        torch.set_default_device,
        torch.device("cpu"),
    )
    return (*_torch_of_thread(torch), *_torch_of_process(torch), device, *_backends(torch))


def _all(torch: Any, importing: bool) -> tuple[Switch, ...]:
    main = threading.current_thread() is threading.main_thread()
    filters = _WIDE_FILTERS if importing else _FILTERS
    of_thread = _SIGNALS if main else ()
    return (*_of_torch(torch), *_NUMPY, _FOLDER, filters, *of_thread)


@cache
def _backends(torch: Any) -> tuple[Switch, ...]:
    """Switches that choose between the implementations of an operation, and so its rounding."""
    places = (
        *(("cudnn", name) for name in ("enabled", "deterministic", "benchmark", "allow_tf32")),
        ("mkldnn", "enabled"),
    )
    attributes = (
        Switch(
            f"torch.backends.{module}.{name}",
            partial(getattr, getattr(torch.backends, module), name),
            partial(setattr, getattr(torch.backends, module), name),
        )
        for module, name in places
    )
    cuda = torch.backends.cuda
    attentions = (
        Switch(
            f"torch.backends.cuda.enable_{name}_sdp",
            getattr(cuda, f"{name}_sdp_enabled"),
            getattr(cuda, f"enable_{name}_sdp"),
        )
        for name in ("flash", "mem_efficient", "math", "cudnn")
    )
    return (*attributes, *attentions)


@cache
def _of_generation(torch: Any) -> tuple[Switch, ...]:
    """Switches that a generator or a task changes for its own duration."""
    if torch is None:
        return _STREAMS
    threads = Switch("torch.set_num_threads", torch.get_num_threads, torch.set_num_threads)
    return (*_STREAMS, threads)


@cache
def _torch_of_thread(torch: Any) -> tuple[Switch, ...]:
    """torch keeps the inference mode, the gradient mode and automatic casts by thread."""
    if torch is None:
        return ()

    def casts() -> tuple[bool, bool]:
        return torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")

    def set_casts(before: tuple[bool, bool]) -> None:
        for device, enabled in zip(("cpu", "cuda"), before, strict=True):
            torch.set_autocast_enabled(device, enabled)

    def set_inference(before: bool) -> None:
        # the mode has no setter: it lasts as long as its context is entered
        context = torch.inference_mode(before)
        context.__enter__()
        _ENTERED.append(context)

    return (
        Switch("torch.inference_mode", torch.is_inference_mode_enabled, set_inference, False),
        Switch("torch.set_grad_enabled", torch.is_grad_enabled, torch.set_grad_enabled, True),
        Switch("torch.set_autocast_enabled", casts, set_casts, (False, False)),
    )


@cache
def _torch_of_process(torch: Any) -> tuple[Switch, ...]:
    if torch is None:
        return ()

    def deterministic() -> tuple[bool, bool]:
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        return torch.are_deterministic_algorithms_enabled(), warn_only

    def set_deterministic(before: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])

    return (
        Switch(
            "torch.set_default_dtype",
            torch.get_default_dtype,
            torch.set_default_dtype,
            torch.float32,
        ),
        Switch(
            "torch.use_deterministic_algorithms", deterministic, set_deterministic, (False, False)
        ),
        Switch(
            "torch.set_float32_matmul_precision",
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
            "highest",
        ),
        Switch("torch.manual_seed", torch.initial_seed, None),
    )


def _switch_of(number: signal.Signals) -> Switch:
    """`_signal` does not make an enum of a handler, which takes longer than all other reads."""

    def put_back(before: Any) -> None:
        if before is not None:  # a handler that Python did not install
            signal.signal(number, before)

    return Switch(f"the handler of {number.name}", lambda: _signal.getsignal(number), put_back)


_SIGNALS = tuple(map(_switch_of, (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)))
"""While SIGCHLD is ignored, no program has an exit status, and the sandbox's seem to never end.
Without Python's handler of SIGPIPE, a connection that is closed ends the process without a word."""


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def _go_back(folder: str | None) -> None:
    if folder is not None:
        with suppress(FileNotFoundError):
            os.chdir(folder)


def _put_back_filters(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]
    with warnings.catch_warnings():  # its end makes modules read the filters again
        pass


def _wide_filters() -> list[Any]:
    """The filters that make errors of warnings, or apply to every warning."""
    return [
        one
        for one in warnings.filters
        if one[0] == "error" or (one[1] is None and one[2] is Warning and one[3] is None)
    ]


def _put_back_wide_filters(before: list[Any]) -> None:
    wide = _wide_filters()
    _put_back_filters([one for one in warnings.filters if one in before or one not in wide])


_STREAMS = tuple(
    Switch(f"sys.{name}", partial(getattr, sys, name), partial(setattr, sys, name))
    for name in ("stdout", "stderr")
)
_NUMPY = (
    Switch("numpy.seterr", np.geterr, lambda before: np.seterr(**before)),
    Switch(  # texts of arrays in observations depend on it
        "numpy.set_printoptions",
        np.get_printoptions,
        lambda before: np.set_printoptions(**before),
    ),
)
_FOLDER = Switch("the current folder", _folder, _go_back)
_FILTERS = Switch("warnings.filters", lambda: list(warnings.filters), _put_back_filters)
_WIDE_FILTERS = Switch("warnings.filters", _wide_filters, _put_back_wide_filters)
