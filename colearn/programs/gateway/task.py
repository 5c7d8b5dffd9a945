"""The task `gateway`: an episode is one run of a program that calls its agents over HTTP."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from colearn import registry
from colearn.contract import (
    SampledAction,
)
from colearn.contract.types import Observation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.errors import ColearnError, ConfigError, TaskError, nearest, reason_of
from colearn.programs.workflow.record import Call, CallResult, Payment
from colearn.programs.workflow.recorded import RecordedTask
from colearn.registry.given import settled
from colearn.text.notes import note_once

from .answer import completion
from .checks import check_agents, check_numbers
from .contexts import REASONS, Reason
from .failures import raised
from .items import read_items
from .payments import NoReward, graded
from .payments import payment as _payment
from .program_run import ProgramRun
from .programs import Opened, ProgramRunner, program_runner
from .requests import SAMPLING, read_call
from .server import GatewayServer
from .state import GatewayCall, GatewayState

State = GatewayState[Any]

_FAILURES = 32
"""Number of consecutive program failures after which the run ends with an error."""
_UNPAID = (
    "gateway: a program ended without a result and without a posted reward, which counts as 0; "
    "return a number from the program, or post its reward"
)


class _Prepared(NamedTuple):
    """An item whose program has been started."""

    item: Any
    live: ProgramRun


class Gateway(RecordedTask[Any, State]):
    """The agents of a program in any framework: LangGraph, OpenAI Agents SDK, AG2, plain `openai`.

    items: a `.jsonl` file (a fifth is held out), or `module:function` called with the split.
    play: `module:function` called with (item, endpoints), async or not; returns the reward.
    command: a program and its arguments, in place of `play`; one process per episode.
    workers: number of processes of `command`, each of which plays one episode after another.
    Without `play` and `command`, workers are started elsewhere.
    grade: `module:function` called with (item, result); it returns the reward in place of the
    program.
    timeout: maximum number of seconds from an answer to the program's next request or to the
    program's end.
    failure_reward: the team's reward for a program that fails or exceeds `timeout`, which ends the
    episode. Without it, such an episode is truncated, and its reward is reported as 0.
    ignore: request fields to ignore silently: temperature, top_p, top_k, seed. An agent always
    samples with its own `sampling`. Without `ignore`, a temperature other than the agent's causes
    one warning, and a request with any of the other fields is refused.
    max_bytes: maximum number of UTF-8 bytes of a context, including the agent's answers.
    words: for each agent, texts on which the embedded model is warm-started.
    """

    program = True
    reads_actions = True
    steps_here = True
    pays_later = True
    measures = (
        "reward",
        "requests",
        "continued",
        "reopened",
        *(f"reopened_{r}" for r in REASONS),
        "failed",
    )

    def __init__(
        self,
        agents: tuple[str, ...],
        items: str,
        *,
        play: str | None = None,
        command: tuple[str, ...] = (),
        workers: int = 0,
        grade: str | None = None,
        horizon: int = 16,
        timeout: float = 60.0,
        failure_reward: float | None = None,
        ignore: tuple[str, ...] = (),
        max_bytes: int = 16384,
        port: int = 0,
        words: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.agents, self.horizon = tuple(agents), horizon
        if play is not None and command:
            raise ConfigError("task.command: set play or command, not both")
        if workers and not command:
            raise ConfigError("task.workers: needs task.command, the program that each runs")
        check_agents(self.agents)
        check_numbers(
            horizon=horizon,
            timeout=timeout,
            failure_reward=0.0 if failure_reward is None else failure_reward,
            workers=workers,
            max_bytes=max_bytes,
            port=port,
        )
        for name in ignore:
            if name not in SAMPLING:
                raise ConfigError(f"task.ignore: '{name}'; {nearest(name, SAMPLING)}")
        for agent in words or {}:
            if agent not in self.agents:
                raise ConfigError(f"task.words: no agent '{agent}'; use {', '.join(agents)}")
        for field, target in (("task.play", play), ("task.grade", grade)):
            if target is not None:
                registry.check_function(target, field)
        self.source = settled(items)
        self.play = None if play is None else settled(play)
        self.grade = None if grade is None else settled(grade)
        self.command, self.workers = tuple(command), workers
        self.timeout, self.failure_reward, self.max_bytes = timeout, failure_reward, max_bytes
        self.port, self.words = port, dict(words or {})
        self.ignore = tuple(ignore)
        self._items: dict[str, Sequence[Any]] = {}
        self._kept: GatewayServer | None = None
        self._opening = threading.Lock()
        self._failures = 0
        self._warned = False
        self._opened: Opened | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns the settings without the server, because live episodes cannot leave their
        process."""
        return {**self.__dict__, "_kept": None, "_opening": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _opening=threading.Lock())

    @property
    def server(self) -> GatewayServer:
        """The server of this process, started at its first use."""
        with self._opening:
            if self._kept is None or self._kept.process != os.getpid():
                self._kept = GatewayServer(
                    self.agents, self._runner(), self.port, ignored=frozenset(self.ignore)
                )
            return self._kept

    def close(self) -> None:
        """Ends the server of this process, its workers and its live episodes."""
        with self._opening:
            server, self._kept = self._kept, None
        if server is not None and server.process == os.getpid():
            server.close()

    def items(self, split: str) -> Sequence[Any]:
        """Reads the file or calls the function, once per split."""
        if split not in self._items:
            self._items[split] = read_items(self.source, split)
        return self._items[split]

    def reset(self, item: Any, rng: np.random.Generator) -> State:
        """Starts a program, unless it is prepared, and waits for its first request."""
        if isinstance(item, _Prepared):
            item, live = item
        else:
            live = self.server.open(item)
        return self._collect(GatewayState(item=item, episode=live.name), live)

    def prepare(self, item: Any) -> Any:
        """Starts a program, if programs may run concurrently."""
        if not self.server.program.concurrent:
            return item
        return _Prepared(item, self.server.open(item))

    def send(self, state: State, actions: Mapping[str, Any]) -> State:
        """Answers the program's requests, if programs may run concurrently."""
        live = self.server.at(state.episode)
        if not self.server.program.concurrent or live is None or not live.claim(state.turn):
            return state
        return replace(state, sent=self._answer(state, live, actions))

    def legal_action(self, state: State, agent: str, rng: np.random.Generator) -> str | None:
        """Draws one of the agent's `words`."""
        words = self.words.get(agent)
        return None if not words else words[int(rng.integers(len(words)))]

    def abandon(self, state: State) -> None:
        """Refuses the waiting requests with the error that a served agent would return, and ends
        the program's episode."""
        live = self.server.at(state.episode)
        if live is None:
            return
        for call in state.waiting:
            assert isinstance(call, GatewayCall)
            live.refuse(
                call.request,
                ServeError(
                    400,
                    "the context leaves no room for an answer in the agent's model",
                    param="messages",
                    code="context_length_exceeded",
                ),
            )
        self.server.forget(live)

    def metrics(self, state: State) -> Mapping[str, float | None]:
        """As in a workflow; the reward of an episode that was cut before its program ended is not
        measured."""
        metrics = super().metrics(state)
        return metrics if state.finished else {**metrics, "reward": None}

    def render(self, state: State) -> str:
        """Returns the requests and answers as lines, and why the program failed."""
        ended = f"\nthe program failed: {state.failure}" if state.failure else ""
        return super().render(state) + ended

    def _truncated(self, state: State) -> bool:
        return state.truncated or super()._truncated(state)

    def _prompt(self, state: State, call: Call) -> Observation:
        assert isinstance(call, GatewayCall)
        return replace(call.prompt, made_from=state.sources(call))

    def _advance(self, state: State, answers: Mapping[str, Any]) -> State:
        state, live = self._run_at(state, frozenset(answers))
        texts = self._answer(state, live, answers) if state.sent is None else state.sent
        events, contexts = list(state.events), dict(state.contexts)
        for call in _due(state, answers):
            contexts[call.name] = call.context.answered(texts[call.name])
            result = SampledAction.of(answers[call.name]).text
            events.append(CallResult(call=call, result=result, turn=state.turn))
        waiting = tuple(call for call in state.waiting if call.name not in answers)
        after = replace(
            state,
            turn=state.turn + 1,
            events=tuple(events),
            contexts=contexts,
            waiting=waiting,
            sent=None,
        )
        return self._collect(after, live)

    def _answer(self, state: State, live: ProgramRun, answers: Mapping[str, Any]) -> dict[str, str]:
        """Answers the program's requests, in their order. Returns each agent's answer in the form
        of its context."""
        texts = {}
        for call in _due(state, answers):
            sampled = SampledAction.of(answers[call.name])
            self._compare(call, sampled)
            body, texts[call.name] = completion(call, sampled)
            live.answer(call.request, body)
        return texts

    def _run_at(self, state: State, asking: frozenset[str]) -> tuple[State, ProgramRun]:
        """Returns a run of the program that is at this state, and the state of that run. The run is
        the state's live episode or, at the root, possibly a new run that has reached the same
        requests."""
        live = self.server.at(state.episode)
        if live is not None and (state.sent is not None or live.claim(state.turn)):
            return state, live
        if state.turn:
            raise TaskError(
                "task.gateway: a program cannot be forked after its first request; set "
                "algorithm.rollout.name to chain or parallel"
            )
        new_run = self.server.open(state.item)
        new_run.claim(0)
        new_run.wait(self.timeout, asking)  # other agents' requests may arrive first
        root = self._collect(GatewayState(item=state.item, episode=new_run.name), new_run)
        calls, expected = root.next_calls(), state.next_calls()
        if new_run.over:
            return replace(state, episode=new_run.name), new_run
        for agent in sorted(asking):
            if agent not in calls or calls[agent].text != expected[agent].text:
                new_run.close()
                raise TaskError(
                    f"task.gateway: the program asks '{agent}' something else when it plays the "
                    "same item again, so parallel episodes cannot be compared; derive what is "
                    "random from the item, or set algorithm.rollout.name to chain"
                )
        return root, new_run

    def _collect(self, state: State, live: ProgramRun) -> State:
        """Returns the state with the program's new requests, rewards and result."""
        calls = list(state.waiting)
        measured = dict(state.measured)
        ends = time.monotonic() + self.timeout
        while not calls and not live.over:
            live.wait(self.timeout)
            if state.turn >= self.horizon:
                break
            for pending in live.take():
                try:
                    number = len(state.events) + len(calls)
                    call = read_call(pending, state, number, self.max_bytes)
                except ServeError as error:
                    live.refuse(pending.name, error)
                    continue
                calls.append(call)
                for name in ("requests", *_counted(call.reason)):
                    measured[name] = measured.get(name, 0.0) + 1.0
            if not calls and time.monotonic() >= ends:  # a program may repeat such a request
                live.close(f"only refused requests within {self.timeout:g} seconds; {live.refused}")
        state = replace(state, waiting=tuple(calls), measured=measured)
        finished = not calls
        payments = [*state.payments, *(_payment(state, paid) for paid in live.rewards())]
        truncated = False
        if finished:
            self.server.forget(live)
            payments += self._last(state, live)
            unpaid = live.failure is not None and self.failure_reward is None
            truncated = unpaid or (live.failure is None and not live.ended)
            if not (payments or truncated):
                note_once(_UNPAID)
            measured["reward"] = sum(paid.value for paid in payments if paid.actions is None)
            measured["failed"] = float(live.failure is not None)
            self._count(live.failure)
        return replace(
            state,
            payments=tuple(payments),
            measured=measured,
            finished=finished,
            failure=live.failure if finished else None,
            truncated=truncated,
        )

    def _last(self, state: State, live: ProgramRun) -> list[Payment]:
        """Returns the rewards at the end of the program."""
        if live.failure is not None:
            return [Payment(value=self.failure_reward or 0.0)]
        if not live.ended:
            return []  # cut off at the horizon
        if state.turn == 0 and live.refused is not None:
            note_once(f"gateway: a program ended without an answer; {live.refused}")
        try:
            return graded(self.grade, live.result, state, self.agents)
        except (ColearnError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - its objects run code of their own
            reason = reason_of(error) if isinstance(error, NoReward) else raised(error)
            failure = "returned no valid reward" if self.grade is None else "cannot be graded"
            live.fail(f"{failure}: {reason}")
            return [Payment(value=self.failure_reward or 0.0)]

    def _compare(self, call: GatewayCall, sampled: SampledAction) -> None:
        """Warns once if the temperature in a request differs from the temperature at which the
        answer was sampled."""
        own_temperature = None if sampled.player is None else sampled.player.sampling_temperature
        temperature = call.temperature
        if (
            None in (own_temperature, temperature)
            or own_temperature == temperature
            or "temperature" in self.ignore
            or self._warned
        ):
            return
        self._warned = True
        print(
            f"warning: gateway: the program asks '{call.name}' for temperature {temperature:g}, "
            f"and the agent's own, {own_temperature:g}, applies; send no temperature, or add it to "
            "task.ignore",
            file=sys.stderr,
            flush=True,
        )

    def _count(self, failure: str | None) -> None:
        """Counts consecutive failures.

        Errors: TaskError after too many consecutive failures.
        """
        self._failures = 0 if failure is None else self._failures + 1
        if self._failures == 1:
            print(f"warning: gateway: a program failed: {failure}", file=sys.stderr, flush=True)
        if self._failures >= _FAILURES:
            raise TaskError(
                f"{self.program_field}: {self._failures} programs in a row failed, the last one: "
                f"{failure}"
            )

    @property
    def program_field(self) -> str:
        """The setting that names the program."""
        return "task.command" if self.play is None else "task.play"

    def _runner(self) -> ProgramRunner:
        return program_runner(self.play, self.command, self.workers, self._opened)

    def by_hand(self, opened: Opened, timeout: float) -> Gateway:
        """Returns a copy of this task for programs that are started by hand. `opened` receives the
        URLs of each episode. Workers can also take episodes."""
        task = copy(self)
        task.play, task.command, task.workers, task.timeout = None, (), 0, timeout
        task._opened = opened
        return task


def _due(state: State, agents: Collection[str]) -> list[GatewayCall]:
    """Returns the requests to the agents that are answered next, in order of arrival."""
    calls = [call for call in state.next_calls().values() if call.name in agents]
    return sorted(
        (call for call in calls if isinstance(call, GatewayCall)), key=lambda call: call.number
    )


def _counted(reason: Reason) -> Sequence[str]:
    if reason == "first":
        return ()
    return ("continued",) if reason == "continued" else ("reopened", f"reopened_{reason}")
