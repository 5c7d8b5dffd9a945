"""A reward function of the user's, with TRL's signature."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn import registry
from colearn.contract.reward import PromptOrText, RewardFunction
from colearn.errors import TaskError
from colearn.given import given, is_given

from .waiting import finish


@dataclass(frozen=True, kw_only=True)
class PythonFunction(RewardFunction):
    """`module:function`, called as TRL calls it: `function(prompts, completions, **columns)`.

    It receives `log_extra` and `log_metric`, whose arguments are discarded, and no
    `trainer_state`. The function may be async. The module is imported at the first call; an object
    of the program is taken at once, so that a later one of the same name does not replace it.

    Errors: ConfigError for a target that is no `module:function`.
    """

    target: str
    """The function, as `module:function`."""
    _known: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        registry.check_function(self.target, "target")
        known = given(self.target, "task.reward") if is_given(self.target) else None
        object.__setattr__(self, "_known", known)

    @property
    def label(self) -> str:
        return self.target.rpartition(":")[2]

    def __call__(
        self,
        prompts: Sequence[PromptOrText],
        completions: Sequence[PromptOrText],
        **columns: Any,
    ) -> list[float | None]:
        """The function's rewards.

        Errors: TaskError unless it returns one number or None per completion.
        """
        function = self._known or registry.own_function(self.target, "task.reward")
        rewards = function(
            prompts=prompts,
            completions=completions,
            log_extra=_discard,
            log_metric=_discard,
            **columns,
        )
        if inspect.isawaitable(rewards):
            rewards = finish(rewards)
        try:
            given = list(rewards)
        except TypeError:
            raise TaskError(
                f"task.reward: '{self.target}' returned {type(rewards).__name__}; return a list "
                "with one reward per completion"
            ) from None
        if len(given) != len(completions):
            raise TaskError(
                f"task.reward: '{self.target}' returned {len(given)} rewards for "
                f"{len(completions)} completions; return one for each"
            )
        return [self._number(reward) for reward in given]

    def _number(self, reward: Any) -> float | None:
        try:
            return None if reward is None else float(reward)
        except (TypeError, ValueError):
            raise TaskError(
                f"task.reward: '{self.target}' returned {reward!r:.60}; return a number, or None "
                "where it does not apply"
            ) from None


def _discard(*_: Any) -> None:
    """TRL's hooks for its own tables."""
