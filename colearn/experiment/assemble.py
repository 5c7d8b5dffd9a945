"""Builds a run's objects from its config: players, model host, updater, exact evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from colearn.agents import AgentSpec, ChatFormat, Language, Program
from colearn.agents.language import no_version
from colearn.config import AgentSettings, Config, ResolvedRun, build_program, resolve
from colearn.contract import FrozenCopy, Learner, ModelHost, NetworkKey, Player
from colearn.critic.stream import text_ids
from colearn.errors import ConfigError, MissingExtra
from colearn.learn.minibatch import UpdateSchedule
from colearn.models.folders import base_folders, with_folders
from colearn.models.load import Tokenizers, resolve_device
from colearn.models.sources import Sources, sources_of
from colearn.text.masking import check_unmasked
from colearn.value_model.critics import Critics
from colearn.value_model.given import GivenCritics, with_given_critic
from colearn.value_model.item_means import ItemMeans

from .evaluation.checked import check_evaluation
from .evaluation.exact import ExactEvaluator
from .evaluation.queried import QueriedEvaluator
from .update.actors import Actors
from .update.updater import Updater


@dataclass(slots=True)
class Assembly:
    """The objects of a run."""

    run: ResolvedRun
    """The resolved config: task, parts, cast."""
    players: dict[str, Player]
    """Every player that can be assigned to a seat, by name."""
    host: ModelHost
    """Host of the models: learners, generators, networks."""
    updater: Updater | None
    """The updater; None if the algorithm does not learn."""
    exact: ExactEvaluator | QueriedEvaluator | None
    """The exact evaluator; None unless the config requests exact evaluation."""
    sources: Sources
    """Digests of the files that the config names."""

    copies: Mapping[NetworkKey, FrozenCopy]
    """Frozen copies of trained models; the copies are saved as part of the run's state."""
    past: Mapping[int, Mapping[str, FrozenCopy]]
    """Past selves, by slot of the cast's pool and by model name."""

    def exact_metrics(self) -> dict[str, float]:
        """Metrics of an exact evaluation of the current weights; empty unless the config requests
        it."""
        if self.exact is None:
            return {}
        self.host.fetch()
        return self.exact.metrics()


def assemble(config: Config) -> Assembly:
    """Load and connect all parts of a run.

    Errors: ConfigError, one line that names the key and the remedy. A ConfigError is also raised if
    the config was read from a run folder in which a setting's value is masked.
    """
    check_unmasked(config.model_dump(mode="json"))
    resolved = resolve(with_given_critic(config), auto=resolve_device("auto").type)
    check_evaluation(resolved)
    given = GivenCritics.of(resolved)
    folders = base_folders(resolved, resolved.networks)
    run = with_folders(resolved, folders)
    tokenizers = Tokenizers()
    with ExitStack() as undo:
        host = run.host.build(run, tokenizers)
        undo.callback(host.close)
        players = _players(run, host)
        assembly = Assembly(
            run=resolved,
            players=players,
            host=host,
            updater=_updater(run, host, tokenizers, given) if run.algorithm.learns else None,
            exact=_exact(run, host, players) if run.config.evaluation.exact else None,
            sources=sources_of(resolved, folders),
            copies=_state_copies(resolved, host),
            past=_past(host),
        )
        undo.pop_all()
    return assembly


def _players(run: ResolvedRun, host: ModelHost) -> dict[str, Player]:
    """Build all players; returns them by name."""
    config, players = run.config, dict[str, Player]()
    for name, hosted in host.players.items():
        settings_of_seat = config.language_agents.get(name)
        learner = (
            None
            if settings_of_seat is None
            else host.learners.get(NetworkKey("actor", settings_of_seat.model))
        )
        players[name] = Language(
            engine=hosted.engine,
            agent=name,
            spec=hosted.spec,
            weights_version=_steps_of(learner),
            truncates=config.language_agents[hosted.agent].overflow == "truncate",
        )
    all_settings = {**config.agents, **config.players}
    for name, settings in all_settings.items():
        if settings.program is not None:
            players[name] = Program(build_program(settings.program, f"{name}.program"))
        if settings.endpoint is not None:
            players[name] = _remote(name, settings)
    past = [name for name in players if name not in all_settings]
    return {name: players[name] for name in (*all_settings, *past)}


def _remote(name: str, settings: AgentSettings) -> Player:
    try:
        from colearn.client.agent import RemoteAgent
        from colearn.client.player import Remote
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "serve") from None
    assert settings.endpoint is not None
    agent = RemoteAgent(settings.endpoint, system=settings.system, sampling=settings.request_fields)
    return Remote(agent)


def _steps_of(learner: Learner | None) -> Callable[[], int]:
    return no_version if learner is None else lambda: learner.steps


def _state_copies(run: ResolvedRun, host: ModelHost) -> dict[NetworkKey, FrozenCopy]:
    """Returns the frozen copies for past selves and, if references are updated, also for
    references. A fixed reference is loaded from its model's path, not restored from a
    checkpoint."""
    copies = host.copies.items()
    return {key: copy for key, copy in copies if key.kind == "past" or run.moving}


def _past(host: ModelHost) -> dict[int, dict[str, FrozenCopy]]:
    by_slot: dict[int, dict[str, FrozenCopy]] = {}
    for key, copy in host.copies.items():
        if key.slot is not None:
            by_slot.setdefault(key.slot, {})[key.model] = copy
    return by_slot


def _updater(
    run: ResolvedRun,
    host: ModelHost,
    tokenizers: Tokenizers,
    given: GivenCritics | None,
) -> Updater:
    config, parts = run.config, run.parts
    learners = {key.model: learner for key, learner in host.learners.items() if key.kind == "actor"}
    critic = None
    if len(learners) < len(host.learners):
        assert config.critic is not None and config.critic.path is not None
        tokenizer = tokenizers.load(config.critic.path, field="critic.path")
        critic = Critics.of(run, host.learners, text_ids(tokenizer))
        if critic.critic.reads_ids:
            _check_words(config, tokenizers)
    return Updater(
        parts=parts,
        actors=Actors(
            specs={
                agent: AgentSpec(**settings.spec_fields)
                for agent, settings in config.language_agents.items()
            },
            learners=learners,
            critic=parts.critic if run.heads else None,
        ),
        critic=critic,
        references={
            key.model: reference
            for key, reference in host.copies.items()
            if key.kind == "reference"
        },
        seed=config.run.seed,
        schedule=UpdateSchedule(
            config.train.epochs, config.train.minibatch, config.train.minibatch_unit
        ),
        target_kl=config.train.target_kl,
        token_budget=run.token_budget,
        together=host.together,
        own_schedules={
            name: UpdateSchedule(
                *run.schedule_of(NetworkKey("actor", name)), config.train.minibatch_unit
            )
            for name in run.with_own_schedule
        },
        critic_alone=0 if config.critic is None else config.critic.warmup_iterations,
        given=given,
        critic_schedule=_critic_schedule(run),
        item_means=ItemMeans({} if given is None else given.item_means),
        item_baseline=config.critic is not None and config.critic.item_baseline,
    )


def _critic_schedule(run: ResolvedRun) -> UpdateSchedule | None:
    critic, train = run.config.critic, run.config.train
    if critic is not None and critic.head == "ridge":
        return UpdateSchedule(1, None)
    if critic is None or (critic.epochs is None and critic.minibatch is None):
        return None
    return UpdateSchedule(
        critic.epochs or train.epochs, critic.minibatch or train.minibatch, train.minibatch_unit
    )


def _check_words(config: Config, tokenizers: Tokenizers) -> None:
    """Errors: ConfigError if a token-level critic's vocabulary differs from that of its agents."""
    assert config.critic is not None and config.critic.path is not None
    words = tokenizers.load(config.critic.path, field="critic.path").get_vocab()
    for name, model in config.models.items():
        if model.trained:
            vocabulary = tokenizers.load(model.path, field=f"models.{name}.path").get_vocab()
            if vocabulary != words:
                raise ConfigError(
                    f"critic.path: its vocabulary differs from that of models.{name}, whose tokens "
                    "it reads; give it the same base, or a critic that reads text (critic.name: "
                    "decentralized)"
                )


def _exact(
    run: ResolvedRun, host: ModelHost, players: Mapping[str, Player]
) -> ExactEvaluator | QueriedEvaluator:
    seats = run.config.agents
    networks = {a: host.networks[NetworkKey("actor", seat.model)] for a, seat in seats.items()}
    specs = {
        agent: AgentSpec(**seats[agent].spec_fields, chat=_chat(players[agent])) for agent in seats
    }
    budget = run.token_budget
    game = run.task.enumerated_game()
    if game is not None:
        return QueriedEvaluator(game, specs, networks, token_budget=budget)
    return ExactEvaluator(run.task, specs, networks, token_budget=budget)


def _chat(player: Player) -> ChatFormat:
    assert isinstance(player, Language), "resolving the run refuses other players"
    return player.spec.chat_format
