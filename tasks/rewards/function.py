"""A user's reward function with TRL's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from typing import Any

from colearn.contract.checked_task import calling
from colearn.contract.reward import PromptOrText, RewardFunction
from colearn.errors import TaskError
from colearn.registry.given import given, is_given
from colearn.registry.own_code import check_function, own_function
from colearn.text.real_number import real_number

from .waiting import finish


@dataclass(frozen=True, kw_only=True)
class PythonFunction(RewardFunction):
    """A function `module:function`, called as in TRL: `function(prompts, completions, **columns)`.

    It receives `log_extra` and `log_metric`, whose arguments are discarded, and no `trainer_state`.
    The function may be async. The module is imported at the first call. An object passed by the
    program is resolved immediately, so that a later object of the same name does not replace it.

    Errors: ConfigError for a target that is not a `module:function`.
    """

    target: str
    """The function, as `module:function`."""
    _known: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_function(self.target, "target")
        known = given(self.target, "target") if is_given(self.target) else None
        object.__setattr__(self, "_known", known)

    @property
    def label(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def _shown(self) -> str:
        """The function's name in an error, without the prefix of an object of the program."""
        return self.label if is_given(self.target) else self.target

    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        **columns: Any,
    ) -> list[float | None]:
        """The function's rewards.

        Errors: TaskError if it raises, or returns anything but one number or None per completion.
        """
        function = self._known or own_function(self.target, "task.reward")
        texts = {"prompts": prompts, "completions": completions}
        passed = {**texts, **columns, "log_extra": _discard, "log_metric": _discard}
        _check_parameters(function, self._shown, passed)
        with calling(f"task.reward: '{self._shown}'"):
            rewards = function(**passed)
            if inspect.isawaitable(rewards):
                rewards = finish(rewards)
        if isinstance(rewards, str | bytes | Mapping):
            kind = "text" if isinstance(rewards, str | bytes) else type(rewards).__name__
            raise TaskError(
                f"task.reward: '{self._shown}' returned a {kind}, {rewards!r:.60}; return a list "
                "with one reward per completion"
            )
        try:
            values = list(islice(rewards, len(completions) + 1))  # it may be endless
        except TypeError:
            raise TaskError(
                f"task.reward: '{self._shown}' returned {type(rewards).__name__}; return a list "
                "with one reward per completion"
            ) from None
        if len(values) != len(completions):
            raise TaskError(
                f"task.reward: '{self._shown}' returned {_counted(rewards, values)} rewards for "
                f"{len(completions)} completions; return one for each"
            )
        return [self._number(reward) for reward in values]

    def _number(self, reward: Any) -> float | None:
        return reward_number(reward, f"task.reward: '{self.label}'")


def _counted(rewards: Any, values: Sequence[Any]) -> str:
    """The number of rewards; only a lower bound is known of a generator, which may be endless."""
    return str(len(rewards)) if hasattr(rewards, "__len__") else f"{len(values)} or more"


def _check_parameters(function: Callable[..., Any], name: str, passed: Mapping[str, Any]) -> None:
    """Errors: TaskError for a function that requires other arguments or does not accept the
    arguments `passed`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, without a signature
        return
    try:
        signature.bind(**passed)
    except TypeError as error:
        raise TaskError(
            f"task.reward: '{name}' cannot be called: {error}; it is given "
            f"{', '.join(passed)}: name its parameters so, and add **kwargs for the others"
        ) from None


def reward_number(reward: Any, subject: str) -> float | None:
    """A reward that the user's code returned; None means not scored.

    Errors: TaskError, which begins with `subject`, for a value that is not a finite number, such
    as a string.
    """
    if reward is None:
        return None
    if isinstance(reward, str | bytes):
        raise TaskError(f"{subject} returned {reward!r:.60}; return a number instead of a text")
    remedy = "return a number, or None if it does not apply"
    try:
        number = real_number(reward)
    except TypeError as error:
        raise TaskError(f"{subject} returned {error}; {remedy}") from None
    if not isfinite(number):
        raise TaskError(f"{subject} returned {number}; return a finite number, or None")
    return number


def _discard(*_: Any) -> None:
    """Stands in for TRL's logging hooks and ignores their arguments."""
