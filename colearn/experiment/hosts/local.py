"""The local host, which holds every model of a run in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from colearn.agents import AgentSpec, ChatFormat
from colearn.config import Config, ResolvedRun
from colearn.contract import Hosted, Learner, ModelHost, NetworkKey
from colearn.contract.host import Given, in_threads, one_by_one
from colearn.contract.player import past_self
from colearn.contract.weight_sync import Publish
from colearn.generate.transformers import TransformersEngine, share_cores
from colearn.learn.constructor import constructor
from colearn.learn.frozen_copy import NetworkCopy
from colearn.models.base import Base
from colearn.models.build_networks import TeamBuilder
from colearn.models.load import Tokenizers, check_vocabulary
from colearn.models.network import Network
from colearn.models.torch_settings import use_tf32, use_threads
from colearn.models.weight_update import weight_update


class LocalHost(ModelHost):
    """Loads the run's networks, or only the networks in `keys`. Builds a learner for each trained
    network, and a frozen copy for each reference and past self. If `keys` contains a reference or
    past self, `keys` must also contain its actor."""

    def __init__(
        self,
        run: ResolvedRun,
        tokenizers: Tokenizers,
        *,
        threads: bool = False,
        keys: Collection[NetworkKey] | None = None,
    ) -> None:
        networks = TeamBuilder(run).build(keys)
        bases = {id(network.base): network.base.causal for network in networks.values()}
        self._threads_before = use_threads(run.config.run.threads, bases.values())
        self._tf32_before = use_tf32(run.config.run.tf32)
        self.learners = _learners(run, networks)
        self.copies = {
            key: _copy(run, key, self.learners, networks)
            for key in networks
            if key.kind in ("reference", "past")
        }
        self.players = _players(run, networks, self.learners, tokenizers)
        live = [o for o in self.engines if isinstance(o, TransformersEngine) and not o.copies]
        if len(live) == len({id(engine.base) for engine in live}):
            share_cores(live)
        self.networks = {
            k: network for k, network in networks.items() if k.kind in ("actor", "critic")
        }
        self._pool = ThreadPoolExecutor(thread_name_prefix="model") if threads else None

    @property
    def serial(self) -> bool:
        return self._pool is None

    def together(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """Run the calls; calls for different bases run concurrently. Calls for models on the same
        base run one after another, since a base has one active adapter at a time."""
        if self._pool is None:
            return one_by_one(calls)
        return in_threads(self._pool, calls, lambda key: id(self.networks[key].base))

    def close(self) -> None:
        super().close()
        torch.set_num_threads(self._threads_before)
        use_tf32(self._tf32_before)
        if self._pool is not None:
            self._pool.shutdown()


def _learners(
    run: ResolvedRun, networks: Mapping[NetworkKey, Network]
) -> dict[NetworkKey, Learner]:
    return {
        key: constructor(run, settings)(
            str(key),
            networks[key],
            settings,
            token_budget=run.token_budget,
            entropy=key.kind == "actor" and run.parts.loss.needs_entropy,
        )
        for key, settings in run.learners.items()
        if key in networks
    }


def _copy(
    run: ResolvedRun,
    key: NetworkKey,
    learners: Mapping[NetworkKey, Learner],
    networks: Mapping[NetworkKey, Network],
) -> NetworkCopy:
    actor = NetworkKey("actor", key.model)
    return NetworkCopy(
        learners[actor],
        networks[actor],
        networks[key],
        token_budget=run.token_budget,
    )


def _players(
    run: ResolvedRun,
    networks: Mapping[NetworkKey, Network],
    learners: Mapping[NetworkKey, Learner],
    tokenizers: Tokenizers,
) -> dict[str, Hosted]:
    """Builds the players. Every base in memory has one engine, so that agents on the same base
    decode in one batch. If the kind of engine does not share engines among agents, every agent has
    a separate engine instead."""
    config = run.config
    agents: dict[str, str] = {}
    specs: dict[int | str, dict[str, AgentSpec]] = {}
    bases: dict[int | str, Base] = {}
    for name, agent, network in _speakers(config, networks):
        key = name if run.generator.apart else id(network.base)
        bases[key] = network.base
        spec = _spec(run, agent, network, tokenizers)
        specs.setdefault(key, {})[name] = spec
        agents[name] = agent
    players: dict[str, Hosted] = {}
    for key, group in specs.items():
        engine = run.generator.build(bases[key], group)
        engine.follow(_sources(bases[key], learners, networks))
        for name, spec in group.items():
            players[name] = Hosted(agents[name], engine, spec)
    return players


def _sources(
    base: Base, learners: Mapping[NetworkKey, Learner], networks: Mapping[NetworkKey, Network]
) -> list[Publish]:
    """Returns functions that publish weights; the functions cover all weights on this base that
    change during a run."""
    sources: list[Publish] = []
    for key, network in networks.items():
        if network.base is base and key.kind == "actor" and key in learners:
            sources.append(learners[key].publish)
        if network.base is base and key.kind == "past":
            sources.append(partial(weight_update, network, 0))
    return sources


def _speakers(
    config: Config, networks: Mapping[NetworkKey, Network]
) -> Iterator[tuple[str, str, Network]]:
    """Lists the players whose actions a language model generates: the player's name, the agent
    whose settings the player uses, and the network. The config's agents come first, then the
    agents' past selves."""
    for agent, settings in config.language_agents.items():
        actor = networks.get(NetworkKey("actor", settings.model))
        if actor is not None:
            yield agent, agent, actor
    slots = dict.fromkeys(key.slot for key in networks if key.slot is not None)
    for slot in slots:
        for agent, settings in config.agents.items():
            past = networks.get(NetworkKey("past", settings.model, slot))
            if settings.speaks and past is not None:
                yield past_self(agent, slot), agent, past


def chat_of(run: ResolvedRun, agent: str, tokenizers: Tokenizers) -> ChatFormat:
    """Returns an agent's chat format. Errors: ConfigError for a model without a tokenizer."""
    settings = run.config.language_agents[agent]
    key = NetworkKey("actor", settings.model)
    path, field = run.path(key), f"{key.section}.path"
    tokenizer = tokenizers.load(path, field=field)
    ends = tokenizers.end_ids(path, field=field)
    return ChatFormat(tokenizer, model_end_ids=ends, **settings.chat_format)


def _spec(run: ResolvedRun, agent: str, network: Network, tokenizers: Tokenizers) -> AgentSpec:
    settings = run.config.language_agents[agent]
    key = NetworkKey("actor", settings.model)
    field = f"{key.section}.path"
    tokenizer = tokenizers.load(run.path(key), field=field)
    words = network.base.config.vocab_size
    check_vocabulary(tokenizer, words, field)
    chat = chat_of(run, agent, tokenizers)
    chat.check_embedded(words, field)
    return AgentSpec(
        **settings.spec_fields,
        chat=chat,
        adapter=network.adapter,
        positions=network.base.positions,
    )
