"""Validation of a task's results: one error line per violation.

Most functions return their argument, so that they can wrap a call.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar

from colearn.contract.types import AnswerLimits, Node, Observation, Outcome
from colearn.errors import TaskError
from colearn.text.printable import is_unicode

Items = TypeVar("Items", bound=Sequence[Any])
State = TypeVar("State")

LARGEST_REWARD = 1e9
"""Maximum absolute value of a reward. With larger rewards, squares and sums of returns overflow
float32."""


def validate_items(items: Items, split: str) -> Items:
    """Check that the items of a split are a non-empty sequence.

    Errors: TaskError.
    """
    sequence = hasattr(items, "__len__") and hasattr(items, "__getitem__")
    if not sequence or isinstance(items, str | bytes | Mapping):
        raise TaskError(
            f"task.items: split '{split}' is a {type(items).__name__}, must be a sequence; "
            "return a list or tuple"
        )
    if len(items) == 0:
        raise TaskError(f"task.items: split '{split}' is empty; return at least one item")
    return items


def validate_horizon(turns: int, longest: int) -> int:
    """Check the maximum number of turns of an item, where `longest` is the task's.

    Errors: TaskError.
    """
    whole = isinstance(turns, Integral) and not isinstance(turns, bool)
    if not whole or not 1 <= turns <= longest:
        raise TaskError(
            f"task.horizon_of: must be a whole number from 1 to task.horizon ({longest}), got "
            f"{turns!r}"
        )
    return turns


def validate_observation(value: str | Observation | None, agent: str) -> Observation | None:
    """Convert what `observe` returned to an `Observation`. Returns None if the agent does not act.

    Errors: TaskError.
    """
    if value is None:
        return None
    prefix = f"task.observe: agent '{agent}' was given"
    observation = value if isinstance(value, Observation) else Observation(value)
    if not isinstance(observation.text, str):
        raise TaskError(
            f"{prefix} a {type(observation.text).__name__}, must be str, Observation or None"
        )
    pairs = isinstance(observation.turns, list | tuple)
    if not pairs or not all(
        isinstance(turn, list | tuple) and len(turn) == 2 for turn in observation.turns
    ):
        raise TaskError(f"{prefix} turns that are no pairs of texts (user, assistant)")
    system = () if observation.system is None else (observation.system,)
    for text in (observation.text, *system, *(part for turn in observation.turns for part in turn)):
        if not isinstance(text, str):
            raise TaskError(f"{prefix} a {type(text).__name__} in system or turns, must be str")
        _check_unicode(text, f"{prefix} half of a surrogate pair, which no tokenizer takes")
    if observation.limits is not None:
        _validate_limits(observation.limits, prefix)
    if observation.tokens:
        raise TaskError(f"{prefix} tokens, which its player adds; leave them out")
    return observation


def _validate_limits(limits: AnswerLimits, prefix: str) -> None:
    """Errors: TaskError for limits that no answer can keep."""
    if not isinstance(limits, AnswerLimits):
        raise TaskError(f"{prefix} limits as a {type(limits).__name__}; use AnswerLimits(...)")
    max_tokens, stop = limits.max_tokens, limits.stop
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise TaskError(
            f"{prefix} limits.max_tokens {max_tokens!r:.60}, must be an integer of 1 or more"
        )
    if not isinstance(stop, tuple) or not all(isinstance(text, str) and text for text in stop):
        raise TaskError(f"{prefix} limits.stop {stop!r:.60}, must be a tuple of non-empty texts")


def validate_text(text: str, method: str) -> str:
    """Check the text that the task's method `method` returned.

    Errors: TaskError.
    """
    return validate_answer(text, f"task.{method}")


def validate_answer(text: str, who: str) -> str:
    """Check a text that the user's code `who` returned.

    Errors: TaskError.
    """
    if not isinstance(text, str):
        raise TaskError(f"{who}: gave a {type(text).__name__}, must be str")
    _check_unicode(text, f"{who}: gave half of a surrogate pair, which nothing can write")
    return text


def _check_unicode(text: str, fault: str) -> None:
    if not is_unicode(text):
        raise TaskError(f"{fault}; replace it with text.encode(errors='replace').decode()")


def validate_metrics(metrics: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """Check metrics: each metric must have a name and a value. A value is a finite number, or None
    if it was not measured.

    Errors: TaskError.
    """
    if not isinstance(metrics, Mapping):
        raise TaskError(
            f"task.metrics: gave a {type(metrics).__name__}, must be a mapping from name to number"
        )
    for name, value in metrics.items():
        if not isinstance(name, str):
            raise TaskError(f"task.metrics: the name {name!r} must be str")
        _check_unicode(name, "task.metrics: a name has half of a surrogate pair, which is no text")
        if value is None:
            continue
        if not isinstance(value, (int, float)):
            raise TaskError(
                f"task.metrics: '{name}' is a {type(value).__name__}, must be a finite number; "
                "use float(...)"
            )
        if not abs(value) <= sys.float_info.max:  # math.isfinite overflows on a huge integer
            raise TaskError(f"task.metrics: '{name}' is {_shown(value)}, must be a finite number")
    return metrics


def validate_costs(costs: Mapping[str, float]) -> Mapping[str, float]:
    """Check the totals of a task's services. A total that is not finite could not be read from the
    run's record again.

    Errors: TaskError.
    """
    if not isinstance(costs, Mapping):
        raise TaskError(f"task.costs: gave a {type(costs).__name__}, must be a mapping to numbers")
    for name, total in costs.items():
        number = isinstance(total, (int, float)) and abs(total) <= sys.float_info.max
        if not isinstance(name, str) or not number:
            raise TaskError(f"task.costs: {name!r} is {total!r:.60}, must be a finite number")
    return costs


def validate_outcome(outcome: Outcome[State], agents: Sequence[str]) -> Outcome[State]:
    """Check a step's outcome. Rewards must be finite or None (not scored), `done` and `truncated`
    must be bools, and local rewards must belong to known agents.

    Errors: TaskError.
    """
    if not isinstance(outcome, Outcome):
        raise TaskError(
            f"task.step: gave a {type(outcome).__name__}, must be an Outcome; "
            "return Outcome(state=..., reward=..., done=...)"
        )
    _finite_or_none(outcome.reward, "reward")
    for name, value in (("done", outcome.done), ("truncated", outcome.truncated)):
        if not isinstance(value, bool):
            raise TaskError(
                f"task.step: {name} is a {type(value).__name__}, must be a bool; use bool(...)"
            )
    if not isinstance(outcome.local_rewards, Mapping):
        raise TaskError(
            f"task.step: local_rewards is a {type(outcome.local_rewards).__name__}, "
            "must be a mapping from agent name to number"
        )
    for agent, reward in outcome.local_rewards.items():
        if agent not in agents:
            raise TaskError(
                f"task.step: local_rewards names '{agent}', which is no agent; "
                f"known: {', '.join(agents)}"
            )
        _finite_or_none(reward, f"local reward of '{agent}'")
    if not isinstance(outcome.earned, Mapping):
        raise TaskError(
            f"task.step: earned is a {type(outcome.earned).__name__}, must be a mapping from "
            "(turn, agent) to number"
        )
    for key, reward in outcome.earned.items():
        if not (isinstance(key, tuple) and len(key) == 2 and key[1] in agents):
            raise TaskError(
                f"task.step: earned: the key {key!r} must be (turn, agent); known agents: "
                f"{', '.join(agents)}"
            )
        _finite_or_none(reward, f"what {key} earned")
    return outcome


def validate_earned(earned: Mapping[tuple[int, str], float | None], played: int) -> None:
    """Check that delayed rewards belong to the `played` turns, which include the turn of this step.

    Errors: TaskError.
    """
    for turn, agent in earned:
        if turn not in range(played):
            raise TaskError(
                f"task.step: earned names turn {turn!r} of '{agent}' after {played} turns; turns "
                f"are 0 to {played - 1}"
            )


def validate_at_once(node: Node[Any], shape: object) -> None:
    """Check that a joint action earned nothing for earlier turns, since the rollout shape compares
    what is paid at once.

    Errors: TaskError.
    """
    turn = node.turn - 1
    for before, agent in node.earned:
        if before != turn:
            raise TaskError(
                f"task.step: pays '{agent}' at turn {turn} for turn {before}, and "
                f"{type(shape).__name__} compares what is paid at once; set pays_later to True on "
                "the task, and train it by mappo or mhgpo"
            )


def _finite_or_none(value: object, field: str) -> None:
    if value is not None:
        _finite(value, field)


def _finite(value: object, field: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TaskError(
            f"task.step: {field} is a {type(value).__name__}, must be a finite number; "
            "use float(...)"
        )
    if not abs(value) <= sys.float_info.max:
        raise TaskError(f"task.step: {field} is {_shown(value)}, must be a finite number")
    if abs(value) > LARGEST_REWARD:
        raise TaskError(
            f"task.step: {field} is {value:.3g}, beyond {LARGEST_REWARD:g}; scale it down"
        )


def _shown(value: float) -> str:
    """Return a short text for a number that is infinite, NaN, or an integer outside the range of a
    float."""
    return str(value) if isinstance(value, float) else "an integer beyond a float's range"
