"""Trains only a critic, on the recorded episodes of finished runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from colearn.config import Config, ResolvedRun, load_config, resolve
from colearn.contract import AgentValues, NetworkKey, Parts
from colearn.contract.algorithm import ValueLoss
from colearn.contract.packing import with_marks
from colearn.contract.rows import Row
from colearn.contract.scored import mean_scored
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.critic.stream import text_ids
from colearn.methods.values.ceiling import Ceiling, ceilings, item_mean_worth
from colearn.methods.values.critic_folder import CriticManifest, write_critic
from colearn.methods.values.critics import Critics
from colearn.methods.values.explained_variance import Pair, TurnWorth, pairs, worth_by_turn
from colearn.methods.values.given import critic_joint_actions, with_given_critic
from colearn.models.build_networks import NetworkBuilder
from colearn.models.folders import base_folders, with_folders
from colearn.models.load import load_tokenizer, resolve_device
from colearn.models.network import Network
from colearn.runs.record import RunFolder, open_run
from colearn.runs.record.folder import TREES
from colearn.runs.record.recorded_tree import tree_of
from colearn.training.learners.learner import build_learner
from colearn.training.learners.minibatch import minibatches
from colearn.training.learners.reader import ModelRows, fit

Report = Callable[[int, tuple[TurnWorth, ...]], None]
"""Called after every epoch with the epoch's number and the critic's explained variance on held-out
episodes, by turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """Settings of a critic fit."""

    epochs: int = 4
    minibatch: int = 64
    """Number of joint actions per optimiser step."""
    held_out: float = 0.1
    """Fraction of the episodes that are held out from training."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.minibatch < 1:
            raise ConfigError("--epochs, --minibatch: must be 1 or more")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"--held-out: must lie between 0 and 1, got {self.held_out}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A critic fitted to recorded episodes."""

    networks: Mapping[NetworkKey, Network] = field(repr=False)
    run: ResolvedRun = field(repr=False)
    joint_actions: int
    """Number of joint actions in all recorded episodes, plus the number of joint actions on which
    the initial critic was trained."""
    episodes: tuple[int, int]
    """Numbers of training episodes and of held-out episodes."""
    worth: tuple[TurnWorth, ...]
    """The critic's explained variance on the held-out episodes, by turn."""
    item_mean: tuple[TurnWorth, ...]
    """Explained variance of a simpler predictor on the held-out episodes, by turn: the mean return
    by item and turn in the training episodes."""
    ceilings: tuple[Ceiling, ...]
    """Maximum fraction of the returns' variance that a critic can explain, by turn, estimated from
    all recorded trees with several branches."""
    metrics: Mapping[NetworkKey, tuple[TurnWorth, ...]]
    """`worth` of each value model."""


def fit_config(
    runs: Sequence[RunFolder],
    *,
    algorithm: str | None = None,
    overrides: Sequence[str] = (),
) -> Config:
    """Returns the config for fitting a critic to recorded runs, which is the config of the first
    run, with `algorithm` replaced if given and without the run's `critic.baseline`. If the first
    run has no critic, the critic uses the base of this run's first model.

    Errors: ConfigError for invalid overrides.
    """
    data = runs[0].settings()
    if algorithm is not None and algorithm != data["algorithm"].get("name"):
        data["algorithm"] = {"name": algorithm}
    if data.get("critic") is not None:
        data["critic"]["baseline"] = None
    else:
        data["critic"] = {"path": next(iter(data["models"].values()))["path"], **_RATES}
    return load_config(data, overrides)


_RATES = {"learning_rate": 1e-3, "head_learning_rate": 1e-2}


def fit_critic(
    runs: Sequence[str | Path],
    config: Config | None = None,
    settings: FitSettings | None = None,
    report: Report | None = None,
) -> Fitted:
    """Train the critic of `config` to predict the returns of all episodes of `runs`.

    config: if None, `fit_config` provides the config. Errors: ConfigError, one line, for runs
    without recorded episodes, for runs with different teams, and for a config without a critic;
    CheckpointError.
    """
    settings = settings or FitSettings()
    folders = [open_run(folder) for folder in runs]
    config = fit_config(folders) if config is None else config
    if config.critic is not None and config.critic.item_baseline:
        raise ConfigError(
            "critic.baseline: a fitted critic has no means by item, as a run begins its own; leave "
            "it out, or set it to none"
        )
    agents = folders[0].record().agents
    config = with_given_critic(config)
    run = resolve(config, agents=agents, auto=resolve_device("auto").type)
    keys = [key for key in run.learners if key.kind == "critic"]
    if not keys:
        raise ConfigError(
            f"critic: {config.algorithm.name} trains no critic of its own; name an algorithm that "
            "does, such as --algorithm collm_cc or coma"
        )
    if run.parts.critic is not None and run.parts.critic.reads_ids:
        raise ConfigError(
            "critic: a critic of tokens reads ids, which recorded episodes do not have; set "
            "algorithm.critic.name to decentralized"
        )
    episodes = run.parts.credited([tree for folder in folders for tree in _trees(folder, agents)])
    held_out, trained = _split(episodes, settings)
    if config.critic is not None and config.critic.head == "ridge":
        settings = replace(settings, epochs=1, minibatch=sum(len(e.nodes) for e in trained))
    placed = with_folders(run, base_folders(run, keys))
    networks = NetworkBuilder(placed).build(keys)
    critics = _critics(placed, networks)
    _train(
        critics,
        replace(run.parts, value_loss=ValueLoss()),
        trained,
        settings,
        lambda epoch: _tell(report, epoch, critics, held_out),
    )
    of_state = critics.critic.of_state
    predictions = _judged(critics, held_out)
    return Fitted(
        networks=networks,
        run=run,
        joint_actions=critic_joint_actions(run, sum(len(tree.nodes) - 1 for tree in episodes)),
        episodes=(len(trained), len(held_out)),
        worth=worth_by_turn(predictions),
        item_mean=item_mean_worth(
            list(
                pairs(trained, _returns(trained, of_state=of_state), of_state=of_state, single=True)
            ),
            predictions,
        ),
        ceilings=ceilings(episodes) if of_state else (),
        metrics={
            key: worth_by_turn(_judged(critics, held_out, model=key.model)) for key in networks
        },
    )


def write_fitted(fitted: Fitted, key: NetworkKey, folder: Path) -> CriticManifest:
    """Write one fitted value model into an empty folder."""
    return write_critic(
        fitted.run,
        key,
        fitted.networks[key],
        folder,
        joint_actions=fitted.joint_actions,
        explained=fitted.metrics[key],
    )


def _trees(folder: RunFolder, agents: Sequence[str]) -> list[Any]:
    """Returns the recorded trees of a run. Errors: ConfigError for a run without recorded episodes,
    or with agents other than `agents`."""
    trees = [tree_of(recorded) for recorded in folder.trees()]
    if not trees:
        raise ConfigError(
            f"{folder.path}: no {TREES}; a run records its episodes with train.record: true"
        )
    if trees[0].agents != tuple(agents):
        raise ConfigError(
            f"{folder.path}: its agents are {', '.join(trees[0].agents)}, those of the first run "
            f"{', '.join(agents)}; fit one critic for each team"
        )
    return trees


def _split(
    episodes: Sequence[Tree[Any]], settings: FitSettings
) -> tuple[list[Tree[Any]], list[Tree[Any]]]:
    """Split the episodes into held-out and training episodes. Errors: ConfigError for too few
    episodes."""
    number = round(settings.held_out * len(episodes))
    if not 0 < number < len(episodes):
        raise ConfigError(
            f"--held-out: {settings.held_out} of {len(episodes)} episodes is {number}; record more"
        )
    order = derive_rng(settings.seed, "held out").permutation(len(episodes)).tolist()
    return [episodes[k] for k in order[:number]], [episodes[k] for k in order[number:]]


def _critics(run: ResolvedRun, networks: Mapping[NetworkKey, Network]) -> Critics:
    settings = run.config.critic
    assert settings is not None and settings.path is not None
    learners = {key: build_learner(run, key, network) for key, network in networks.items()}
    tokenizer = load_tokenizer(settings.path, field="critic.path")
    return Critics.of(run, learners, text_ids(tokenizer))


def _train(
    critics: Critics,
    parts: Parts,
    episodes: Sequence[Tree[Any]],
    settings: FitSettings,
    report: Callable[[int], None],
) -> None:
    targets = _returns(episodes, of_state=critics.critic.of_state)
    for name, learner in critics.learners.items():
        reached = [
            value
            for episode, by_agent in zip(episodes, targets, strict=True)
            for reader, agents in critics.critic.readers(episode.agents).items()
            if critics.value_model(reader) == name
            for agent in agents
            for value in by_agent[agent]
            if value is not None and value == value  # scored
        ]
        learner.observe(reached, float(np.mean(reached)))
    rows = critics.rows(episodes)
    critics.add_values("targets", rows, episodes, dict(enumerate(targets)))
    objective = partial(critics.objective, parts.advantage, parts.value_loss, episodes=None)
    rng = derive_rng(settings.seed, "fit")
    orders = [rng.permutation(len(episodes)).tolist() for _ in range(settings.epochs)]
    cut = [list(minibatches(episodes, settings.minibatch, order)) for order in orders]
    steps, total = 0, sum(map(len, cut))
    for epoch, batches in enumerate(cut, start=1):
        epoch_rows = {name: _of_one_agent(model_rows, rng) for name, model_rows in rows.items()}
        for numbers in batches:
            fit(critics.minibatches(epoch_rows, numbers, objective), steps / total)
            steps += 1
        report(epoch)


def _of_one_agent(rows: ModelRows, rng: np.random.Generator) -> ModelRows:
    """Returns the rows of an epoch. If a joint action has one Q-value per agent (`Mark.agent`),
    keeps only the mark of one random agent, which is sampled again in every epoch. All marks of a
    joint action have the same target, and every mark costs as much as the whole joint action."""

    def one_per_node(row: Row) -> Row:
        by_node: dict[int, list[int]] = {}
        for place, mark in enumerate(row.marks):
            if mark.agent is None:
                return row
            by_node.setdefault(mark.node, []).append(place)
        return with_marks(row, [int(rng.choice(places)) for places in by_node.values()])

    return {number: list(map(one_per_node, tree_rows)) for number, tree_rows in rows.items()}


def _returns(episodes: Sequence[Tree[Any]], *, of_state: bool) -> list[AgentValues]:
    """Returns the value targets of each tree: for V, the mean return after a node; for Q, the
    return of the edge into a node. A target is NaN (not scored) if a branch was cut before its
    end."""
    targets: list[AgentValues] = []
    for episode in episodes:
        below = episode.below()
        by_agent = {}
        for agent in episode.agents:
            returns = episode.returns_of(agent)
            by_agent[agent] = tuple(
                (mean_scored(returns[c] for c in edges) if edges else nan) if of_state else g
                for edges, g in zip(below, returns, strict=True)
            )
        targets.append(by_agent)
    return targets


def _judged(
    critics: Critics, episodes: Sequence[Tree[Any]], model: str | None = None
) -> list[Pair]:
    values = critics.values(episodes)
    if model is not None:
        readers = critics.critic.readers(episodes[0].agents).items()
        own_agents = {a for r, agents in readers if critics.value_model(r) == model for a in agents}
        values = [{a: v for a, v in by_agent.items() if a in own_agents} for by_agent in values]
    return list(pairs(episodes, values, of_state=critics.critic.of_state, single=True))


def _tell(
    report: Report | None, epoch: int, critics: Critics, held_out: Sequence[Tree[Any]]
) -> None:
    if report is not None:
        report(epoch, worth_by_turn(_judged(critics, held_out)))
