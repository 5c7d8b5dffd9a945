"""Evaluates a team on held-out items: decentralised execution without learning."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from colearn.config import EvaluationSettings
from colearn.contract import Cast, Credit, DecPOMDP, Headline, NetworkKey, Player
from colearn.contract.checked_task import item_name
from colearn.contract.seeding import derive_seed
from colearn.contract.types import Tree
from colearn.errors import TaskError
from colearn.models.load import resolve_device
from colearn.rollout.agents import AgentSpec, ChatFormat, Language
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.text.notes import note_once
from colearn.training.processes import Processes
from colearn.training.team import Team

from .doubts import doubts
from .exact import ExactEvaluator
from .pass_at_k import pass_metrics
from .played import evaluation_items, mean_outcomes, mean_turns
from .queried import QueriedEvaluator


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Mean metrics over the evaluation episodes, and the episodes themselves."""

    metrics: dict[str, float]
    """`return` (undiscounted, of the team or the players), `objective` (credited return), the
    task's metrics of the final state, `pass@k` if requested, `turns`, `tokens_per_turn` (mean per
    agent and turn), `cut_answers` (fraction of answers cut at their token limit) and
    `response_seconds` (per turn, of the slowest agent)."""
    trees: list[Tree[Any]]


def evaluate_team(
    task: DecPOMDP[Any, Any],
    players: Mapping[str, Player],
    settings: EvaluationSettings,
    *,
    seed: int,
    credit: Credit,
    cast: Cast,
    processes: Processes,
    pool: Executor | None = None,
) -> Evaluation:
    """Play the evaluation episodes, with the same items and seeds in every call. If the numbers may
    be unreliable, print the reasons on stderr, once per process.

    Errors: TaskError if the task breaks its contract or scores no episode.
    """
    items, split_size = evaluation_items(task, settings)
    first, items_of_rank = processes.share_of(items)
    trees, counts = processes.exchange(
        lambda: grow(
            task,
            items_of_rank,
            players,
            Chain(),
            seed=derive_seed(seed, "evaluation"),
            credit=credit,
            cast=cast,
            first_episode=first,
            greedy=settings.greedy,
            pool=pool,
            at_once=settings.at_once,
        )
    )
    metrics = mean_outcomes(trees, task.pays, credit)
    if "return" not in metrics:
        raise TaskError(
            f"task.reward: none of the {len(trees)} evaluation episodes is scored: each reward "
            f"is None, as of item '{item_name(trees[0].item)}'; return a number where one applies"
        )
    metrics |= pass_metrics(trees, settings, split_size)
    metrics["turns"] = mean_turns(trees)
    metrics["tokens_per_turn"] = counts.tokens_per_action
    metrics["response_seconds"] = float(np.mean(counts.response_seconds or [0.0]))
    for line in doubts(trees, task, settings, split_size):
        note_once(line)
    return Evaluation(metrics, trees)


def evaluate_run(
    team: Team,
    exact: ExactEvaluator | QueriedEvaluator | None,
    processes: Processes,
    pool: Executor | None = None,
) -> Evaluation:
    """Evaluate a run's team with its current weights and the config's settings. `exact` adds its
    metrics. Errors: as for `evaluate_team`."""
    run = team.run
    evaluation = evaluate_team(
        run.task,
        team.players,
        run.config.evaluation,
        seed=run.config.run.seed,
        credit=run.parts.credit,
        cast=run.cast,
        processes=processes,
        pool=pool,
    )
    if exact is not None:
        team.fetch()
        evaluation.metrics.update(exact.metrics())
    return evaluation


def headline_value(evaluation: Evaluation, headline: Headline) -> float:
    """The value by which an evaluation is judged. Errors: TaskError if no episode measured it."""
    value = evaluation.metrics.get(headline.metric)
    if value is None:
        raise TaskError(
            f"evaluation.headline: '{headline.metric}' was measured in none of the "
            f"{len(evaluation.trees)} evaluation episodes; name another metric"
        )
    return value


def exact_evaluator(team: Team) -> ExactEvaluator | QueriedEvaluator | None:
    """Returns the exact evaluator of a team; None unless the config requests exact evaluation.
    Errors: ConfigError for a task that cannot be evaluated exactly, or truncated sampling."""
    run, seats = team.run, team.run.config.agents
    if not run.config.evaluation.exact:
        return None
    networks = {a: team.networks[NetworkKey("actor", seat.model)] for a, seat in seats.items()}
    specs = {
        agent: AgentSpec(**seat.spec_fields, chat=_chat(team.players[agent]))
        for agent, seat in seats.items()
    }
    game = run.task.enumerated_game()
    if game is not None:
        return QueriedEvaluator(game, specs, networks, token_budget=run.token_budget)
    return ExactEvaluator(run.task, specs, networks, token_budget=run.token_budget)


def _chat(player: Player) -> ChatFormat:
    assert isinstance(player, Language), "resolving the run refuses other players"
    return player.spec.chat_format


def evaluate_weights(team: Team, folders: Mapping[NetworkKey, Path]) -> dict[str, float]:
    """Returns the metrics of a team whose weights come from checkpoints. The evaluation uses the
    config's settings, including exact evaluation.

    folders: the checkpoint folder of each learner; learners without a folder keep their weights.
    Errors: CheckpointError for a folder that cannot be read or belongs to another model.
    """
    for key, folder in folders.items():
        team.learners[key].load(folder)
    team.publish()
    processes = Processes(resolve_device(team.run.config.run.device))
    with closing(team.run.task):
        return evaluate_run(team, exact_evaluator(team), processes).metrics
