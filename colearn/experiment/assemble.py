"""From a config to living parts: players for the collector, learners for the updater."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from colearn.agents import Language
from colearn.config import (
    Config,
    CriticSettings,
    ModelSettings,
    bind_agents,
    build_algorithm,
    build_part,
    build_task,
    check_paces,
    untrained_config,
)
from colearn.contract import (
    Cast,
    DecPOMDP,
    Generator,
    Learner,
    LearnerKind,
    NetworkKey,
    Parts,
    Player,
)
from colearn.contract.decisions import QueriedTask
from colearn.errors import ConfigError
from colearn.learn.follower import Follower
from colearn.learn.minibatch import Pace
from colearn.models.embedded import EMBEDDED, embedded_model
from colearn.models.load import Tokenizers
from colearn.models.network import Network
from colearn.models.team import TeamBuilder, TeamNetworks

from .evaluation.asked import Reader
from .evaluation.exact import ExactEvaluator
from .evaluation.queried import QueriedEvaluator
from .seating import seat_players
from .update.actor_rows import Role
from .update.critics import CriticTrainer
from .update.updater import Updater


@dataclass(slots=True)
class Assembly:
    """Everything a run consists of."""

    config: Config
    """With every agent and model spelled out."""
    task: DecPOMDP[Any, Any]
    parts: Parts
    players: dict[str, Player]
    """Everyone who may sit in a seat, by name."""
    cast: Cast
    generators: list[Generator]
    learners: dict[NetworkKey, Learner]
    """Every trained network's, actors and critics."""
    updater: Updater | None
    """None where the algorithm learns nothing."""
    networks: dict[NetworkKey, Network]
    exact: ExactEvaluator | QueriedEvaluator | None
    """Where the config asks for exact evaluation."""

    past: dict[int, dict[str, Follower]]
    """By slot of the cast's pool and by model name, the trained models as they were a while ago."""

    @property
    def followers(self) -> dict[NetworkKey, Follower]:
        """Copies of trained models that are state of the run."""
        found = {
            NetworkKey("past", name, slot): follower
            for slot, models in self.past.items()
            for name, follower in models.items()
        }
        if self.updater is not None and self.parts.loss.refresh is not None:
            references = self.updater.references.items()
            found |= {NetworkKey("reference", name): one for name, one in references}
        return found


def assemble(config: Config) -> Assembly:
    """Load and connect all parts of a run.

    Errors: ConfigError, one line that names the key and the remedy.
    """
    task = build_task(config)
    config = bind_agents(config, task.agents)
    algorithm = build_algorithm(config)
    algorithm.check_task(task)
    parts = algorithm.checked_parts()
    if not algorithm.learns:
        config = untrained_config(config)
    check_paces(config, parts)
    cast: Cast = build_part(Cast, config.cast, "cast")
    bound, config = config, _with_folders(config, task)
    builder = TeamBuilder(config)
    team = builder.build(
        parts.critic,
        task.agents,
        reference=parts.loss.needs_reference,
        moving=parts.loss.refresh is not None,
        pool=cast.pool,
    )

    tokenizers = Tokenizers()
    learners = _learners(config, parts, team)
    players, generators = seat_players(config, team, learners, tokenizers)
    networks = {NetworkKey("actor", name): network for name, network in team.actors.items()}
    networks |= {NetworkKey("critic", name): network for name, network in team.critics.items()}
    return Assembly(
        config=bound,
        task=task,
        parts=parts,
        players=players,
        cast=cast,
        generators=generators,
        learners=learners,
        updater=_updater(config, parts, learners, team, tokenizers) if algorithm.learns else None,
        networks=networks,
        exact=_exact(config, task, team, players) if config.evaluation.exact else None,
        past={
            slot: {
                name: Follower(learners[NetworkKey("actor", name)], team.actors[name], network)
                for name, network in models.items()
            }
            for slot, models in team.past.items()
        },
    )


def _updater(
    config: Config,
    parts: Parts,
    learners: Mapping[NetworkKey, Learner],
    team: TeamNetworks,
    tokenizers: Tokenizers,
) -> Updater:
    critic = _critic_trainer(config, parts, learners, team, tokenizers)
    actors = {
        name: learners[NetworkKey("actor", name)]
        for name, model in config.models.items()
        if model.trained
    }
    if not actors:
        raise ConfigError("models: no model is trained; set trained: true on one of them")
    shared = parts.critic is not None and critic is None
    if critic is not None and critic.critic.reads_ids:
        _check_words(config, tokenizers)
    return Updater(
        parts=parts,
        roles={
            agent: Role(
                model=settings.model,
                temperature=settings.sampling.training_temperature,
                window=settings.window,
            )
            for agent, settings in config.voices.items()
        },
        actors=actors,
        critic=critic,
        shared_head=shared,
        references={
            name: Follower(actors[name], team.actors[name], network)
            for name, network in team.references.items()
        },
        seed=config.run.seed,
        epochs=config.train.epochs,
        minibatch=config.train.minibatch,
        target_kl=config.train.target_kl,
        token_budget=config.train.token_budget,
        paces={name: Pace(*config.pace(name)) for name in config.paced if name in actors},
    )


def _check_words(config: Config, tokenizers: Tokenizers) -> None:
    """A critic of tokens reads the agents' own ids."""
    assert config.critic is not None and config.critic.path is not None
    words = tokenizers.load(config.critic.path, field="critic.path").get_vocab()
    for name, model in config.models.items():
        if model.trained:
            own = tokenizers.load(model.path, field=f"models.{name}.path").get_vocab()
            if own != words:
                raise ConfigError(
                    f"critic.path: reads the tokens of models.{name}, which has other words; give "
                    "it the same base, or a critic that reads text (critic.name: decentralized)"
                )


def _exact(
    config: Config, task: DecPOMDP[Any, Any], team: TeamNetworks, players: Mapping[str, Player]
) -> ExactEvaluator | QueriedEvaluator:
    readers = {}
    for agent, settings in config.agents.items():
        player = players[agent]
        if not isinstance(player, Language):
            raise ConfigError(
                f"evaluation.exact: agents.{agent} is no language model; set it to false"
            )
        readers[agent] = Reader(
            network=team.actors[settings.model], chat=player.chat, settings=settings
        )
    if isinstance(task, QueriedTask):
        return QueriedEvaluator(task, readers, token_budget=config.train.token_budget)
    return ExactEvaluator(task, readers, token_budget=config.train.token_budget)


def _with_folders(config: Config, task: DecPOMDP[Any, Any]) -> Config:
    """The config with the embedded model made, and its folder in place of its name."""
    made: dict[str, str] = {}

    def folder(path: str | None, field: str) -> str | None:
        if path is None or not path.startswith(EMBEDDED):
            return path
        if path not in made:
            made[path] = str(embedded_model(task, path, field))
        return made[path]

    models = {
        name: model.model_copy(update={"path": folder(model.path, f"models.{name}.path")})
        for name, model in config.models.items()
    }
    critic = config.critic
    if critic is not None:
        critic = critic.model_copy(update={"path": folder(critic.path, "critic.path")})
    return config.model_copy(update={"models": models, "critic": critic})


def _learners(config: Config, parts: Parts, team: TeamNetworks) -> dict[NetworkKey, Learner]:
    learners: dict[NetworkKey, Learner] = {}
    for name, model in config.models.items():
        if model.trained:
            key = NetworkKey("actor", name)
            learners[key] = _learner(
                config, key, team.actors[name], model, parts.loss.needs_entropy
            )
    for value_model, network in team.critics.items():
        assert config.critic is not None
        key = NetworkKey("critic", value_model)
        learners[key] = _learner(config, key, network, config.critic, False)
    return learners


def _learner(
    config: Config,
    key: NetworkKey,
    network: Network,
    settings: ModelSettings | CriticSettings,
    entropy: bool,
) -> Learner:
    kind = build_part(LearnerKind, config.run.learner, "run.learner")
    return kind.build(
        str(key), network, settings, token_budget=config.train.token_budget, entropy=entropy
    )


def _critic_trainer(
    config: Config,
    parts: Parts,
    learners: Mapping[NetworkKey, Learner],
    team: TeamNetworks,
    tokenizers: Tokenizers,
) -> CriticTrainer | None:
    if parts.critic is None or not team.critics:
        return None
    assert config.critic is not None and config.critic.path is not None
    tokenizer = tokenizers.load(config.critic.path, field="critic.path")

    @lru_cache(maxsize=4096)
    def tokenize(text: str) -> tuple[int, ...]:
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

    return CriticTrainer(
        critic=parts.critic,
        learners={name: learners[NetworkKey("critic", name)] for name in team.critics},
        value_model=config.critic.value_model,
        tokenize=tokenize,
        advantage=parts.advantage,
        settings=parts.value_loss,
        max_length=config.critic.max_length,
    )
