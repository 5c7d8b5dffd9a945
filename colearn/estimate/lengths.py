"""Compares the lengths of histories with what each agent's model can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.errors import ConfigError
from colearn.rollout.agents import AgentSpec
from colearn.rollout.agents.language import with_tokens
from colearn.rollout.context_limit import check_length

from .episodes import Rehearsed
from .script import Script


def check_lengths(
    task: DecPOMDP[Any, Any],
    items: Sequence[Any],
    scripts: Sequence[Script],
    specs: Mapping[str, AgentSpec],
) -> None:
    """Errors: TaskError if a prompt exceeds the maximum length of its agent's model; ConfigError if
    a prompt does not fit its agent's window."""
    for item, script in zip(items, scripts, strict=True):
        for turn in script:
            for agent, prompt in turn.seen.items():
                spec = specs.get(agent)
                if spec is not None and spec.chat is not None:
                    with CheckedTask(task, item_name(item)).placed():
                        tokens = len(with_tokens(spec.chat, prompt, None).tokens)
                        check_length(agent, tokens, spec.positions)
                    if spec.window is not None and tokens > spec.window:
                        raise ConfigError(
                            f"agents.{agent}.window: an observation of {tokens} tokens exceeds the "
                            f"window of {spec.window}; raise it"
                        )


def overflows(
    played: Sequence[Rehearsed], specs: Mapping[str, AgentSpec], limits: Mapping[str, str]
) -> dict[str, str]:
    """Return warnings, keyed by config field, about agents whose histories may leave no room for an
    answer within the model's maximum length, if every action has maximum length. `limits` is each
    agent's `overflow`."""
    longest: Counter[str] = Counter()
    for episode in played:
        for turn in episode.lengths():
            for agent, (tokens, _) in turn.items():
                longest[agent] = max(longest[agent], tokens)
    warnings = {}
    for agent, spec in specs.items():
        if spec.positions is not None and longest[agent] >= spec.positions:
            consequence = "stops the run" if limits.get(agent) == "error" else "ends the episode"
            warnings[f"agents.{agent}.overflow"] = (
                f"a history may reach {longest[agent]} tokens and its model reads "
                f"{spec.positions}: what does not fit {consequence}; show less, play fewer turns, "
                "lower sampling.max_tokens, or name a model with a longer context"
            )
    return warnings
