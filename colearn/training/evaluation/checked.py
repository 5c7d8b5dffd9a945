"""Checks the evaluation settings before a run by playing one scripted episode, without a model."""

from __future__ import annotations

from typing import Any

from colearn.config import ResolvedRun
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.seeding import derive_rng
from colearn.errors import ConfigError, nearest
from colearn.rollout.agents import AgentSpec

from .exact import METRICS, require_finite, require_plain_sampling
from .pass_at_k import require_pass, require_repeats
from .queried import exact_names

_ALWAYS = ("return", "objective", "turns", "tokens_per_turn", "response_seconds")
"""Metrics of every evaluation; the first two are also reported for each agent."""


def check_evaluation(run: ResolvedRun) -> None:
    """Check the callbacks; check exact evaluation, pass@k and the headline metric against the task.

    Errors: the ConfigError or TaskError that the first evaluation would raise.
    """
    settings, task = run.config.evaluation, run.task
    added = {name for callback in run.callbacks for name in callback.adds}
    if settings.exact:
        if task.enumerated_game() is None:
            require_finite(task)
        require_plain_sampling(
            {a: AgentSpec(**s.spec_fields) for a, s in run.config.agents.items()}
        )
    headline = settings.headline
    if not settings.pass_at and headline is None:
        return
    items = CheckedTask(task).items(settings.split)
    if settings.pass_at:
        played = settings.episodes or len(items)
        require_repeats(settings.pass_at, settings.repeats * max(1, played // len(items)))
    metrics = _ending(task, items[0])
    if settings.pass_at:
        require_pass(metrics, items[0])
    if headline is not None:
        known = {*metrics, *added, *_ALWAYS, *(f"pass@{k}" for k in settings.pass_at)}
        if settings.exact:
            game = task.enumerated_game()
            known |= {*METRICS} if game is None else exact_names(game, task.agents)
        if headline.metric not in known and headline.metric.partition("/")[0] not in _ALWAYS:
            raise ConfigError(
                f"evaluation.headline: no metric '{headline.metric}'; "
                f"{nearest(headline.metric, known)}"
            )


def _ending(task: DecPOMDP[Any, Any], item: Any) -> dict[str, float | None]:
    """Returns the metrics at the end of an episode. The episode is played with legal actions, or
    with empty actions if the task offers no legal actions."""
    rng, checked = derive_rng("check"), CheckedTask(task, item_name(item))
    state = checked.reset(item, rng)
    for _ in range(task.horizon):
        by_agent = checked.observe(state)
        actions = {agent: checked.legal_action(state, agent, rng) or "" for agent in by_agent}
        outcome = checked.step(state, actions, rng)
        state = outcome.state
        if outcome.last:
            break
    return checked.metrics(state)
