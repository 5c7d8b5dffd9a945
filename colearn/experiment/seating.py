"""Everyone who may sit in a seat, from the settings of agents and players."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from colearn.agents import ChatFormat, Language, LanguageTable, Program
from colearn.agents.language import no_version
from colearn.config import AgentSettings, Config, ResolvedRun, build_program
from colearn.contract import Generator, Learner, NetworkKey, Player, Sampling
from colearn.contract.player import past_self
from colearn.contract.weights import Publish
from colearn.errors import MissingExtra
from colearn.generate.transformers import Voice
from colearn.models.base import Base
from colearn.models.load import Tokenizers, check_vocabulary
from colearn.models.network import Network
from colearn.models.published import published


def seat_players(
    run: ResolvedRun,
    networks: Mapping[NetworkKey, Network],
    learners: Mapping[NetworkKey, Learner],
    tokenizers: Tokenizers,
) -> tuple[dict[str, Player], list[Generator]]:
    """One generator for each base in memory, so that agents that share it speak in one batch; one
    for each agent where the config wants them apart."""
    config = run.config
    voices: dict[int | str, dict[str, Voice]] = {}
    bases: dict[int | str, Base] = {}
    temperatures: dict[str, Callable[[float], float]] = {}
    for name, agent, network in _speakers(config, networks):
        key = name if run.generator.apart else id(network.base)
        bases[key] = network.base
        speakers = voices.setdefault(key, {})
        temperatures[name] = config.voices[agent].sampling.training_temperature
        speakers[name] = _voice(config, agent, config.voices[agent], network, tokenizers)
    players: dict[str, Player] = {}
    generators: list[Generator] = []
    for key, group in voices.items():
        generator = run.generator.build(bases[key], group)
        generator.follow(_sources(bases[key], learners, networks))
        generators.append(generator)
        table = LanguageTable(generator)
        for name, voice in group.items():
            own = config.voices.get(name)
            learner = None if own is None else learners.get(NetworkKey("actor", own.model))
            players[name] = Language(
                table,
                name,
                voice.chat,
                _steps_of(learner),
                temperatures[name],
                positions=bases[key].positions,
            )
    everyone = {**config.agents, **config.players}
    for name, settings in everyone.items():
        if settings.program is not None:
            players[name] = Program(build_program(settings.program, f"{name}.program"))
        if settings.endpoint is not None:
            players[name] = _remote(name, settings)
    past = [name for name in players if name not in everyone]
    return {name: players[name] for name in (*everyone, *past)}, generators


def _sources(
    base: Base, learners: Mapping[NetworkKey, Learner], networks: Mapping[NetworkKey, Network]
) -> list[Publish]:
    """What publishes the weights that agents on this base speak with and that change."""
    sources: list[Publish] = []
    for key, network in networks.items():
        if network.base is base and key.kind == "actor" and key in learners:
            sources.append(learners[key].publish)
        if network.base is base and key.kind == "past":
            sources.append(partial(published, network, 0))
    return sources


def _speakers(
    config: Config, networks: Mapping[NetworkKey, Network]
) -> Iterator[tuple[str, str, Network]]:
    """Everyone whom a language model plays: the name, the agent whose settings it has, and the
    network; first those of the config, then the agents' past selves."""
    for agent, settings in config.voices.items():
        yield agent, agent, networks[NetworkKey("actor", settings.model)]
    slots = dict.fromkeys(key.slot for key in networks if key.slot is not None)
    for slot in slots:
        for agent, settings in config.agents.items():
            past = networks.get(NetworkKey("past", settings.model, slot))
            if settings.speaks and past is not None:
                yield past_self(agent, slot), agent, past


def _remote(name: str, settings: AgentSettings) -> Player:
    try:
        from colearn.client.agent import RemoteAgent
        from colearn.client.player import Remote, RemoteTable
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "serve") from None
    assert settings.endpoint is not None
    agent = RemoteAgent(settings.endpoint, system=settings.system, sampling=settings.request_fields)
    return Remote(RemoteTable(agent))


def _steps_of(learner: Learner | None) -> Callable[[], int]:
    return no_version if learner is None else lambda: learner.steps


def _voice(
    config: Config,
    agent: str,
    settings: AgentSettings,
    network: Network,
    tokenizers: Tokenizers,
) -> Voice:
    tokenizer = tokenizers.load(
        config.models[settings.model].path, field=f"models.{settings.model}.path"
    )
    check_vocabulary(tokenizer, network.base.config.vocab_size, f"models.{settings.model}.path")
    chat = ChatFormat(tokenizer, **settings.chat_format)
    sampling = settings.sampling
    return Voice(
        adapter=network.adapter,
        chat=chat,
        sampling=Sampling(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.max_tokens,
            stop=sampling.stop,
        ),
        window=settings.window,
    )
