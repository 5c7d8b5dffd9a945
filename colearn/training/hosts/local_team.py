"""Builds a team whose models are all in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from colearn.config import ResolvedRun
from colearn.contract import Learner, NetworkKey
from colearn.contract.host import in_threads
from colearn.contract.weight_sync import Publish
from colearn.engines.transformers import TransformersEngine, share_cores
from colearn.models.base import Base
from colearn.models.build_networks import NetworkBuilder
from colearn.models.load import Tokenizers, check_vocabulary
from colearn.models.network import Network
from colearn.models.torch_settings import use_tf32, use_threads
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, Language
from colearn.training.learners.copies import NetworkCopy
from colearn.training.learners.learner import build_learner
from colearn.training.players import agent_spec, language_player
from colearn.training.team import Team


def local_team(
    run: ResolvedRun,
    tokenizers: Tokenizers,
    *,
    threads: bool = False,
    keys: Collection[NetworkKey] | None = None,
) -> Team:
    """Load the run's networks, or only the networks in `keys`. Builds a learner for each trained
    network, and a frozen copy for each reference and past self. If `keys` contains a reference or
    past self, `keys` must also contain its actor.

    threads: whether calls for models on different bases run concurrently. Calls for models on the
    same base run one after another, since a base has one active adapter at a time.
    """
    networks = NetworkBuilder(run).build(keys)
    bases = {id(network.base): network.base.causal for network in networks.values()}
    threads_before = use_threads(run.config.run.threads, bases.values())
    tf32_before = use_tf32(run.config.run.tf32)
    learners = {
        key: build_learner(run, key, networks[key]) for key in run.learners if key in networks
    }
    team = Team(
        run=run,
        tokenizers=tokenizers,
        networks={k: network for k, network in networks.items() if k.kind in ("actor", "critic")},
        learners=learners,
        copies={
            key: _copy(run, key, learners, networks)
            for key in networks
            if key.kind in ("reference", "teacher", "past")
        },
        players=_players(run, networks, learners, tokenizers),
    )
    live = [o for o in team.engines if isinstance(o, TransformersEngine) and not o.copies]
    if len(live) == len({id(engine.base) for engine in live}):
        share_cores(live)
    if threads:
        pool = ThreadPoolExecutor(thread_name_prefix="model")
        team.resources.callback(pool.shutdown)
        team.together = partial(in_threads, pool, group=lambda key: id(networks[key].base))
    team.resources.callback(use_tf32, tf32_before)
    team.resources.callback(torch.set_num_threads, threads_before)
    return team


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
) -> dict[str, Language]:
    """Builds the players that these networks play. Every base in memory has one engine, so that
    agents on the same base decode in one batch. If the kind of engine does not share engines among
    agents, every agent has a separate engine instead."""
    specs: dict[int | str, dict[str, AgentSpec]] = {}
    bases: dict[int | str, Base] = {}
    for name, (agent, of_network) in run.speakers.items():
        if of_network in networks:
            network = networks[of_network]
            key = name if run.generator.apart else id(network.base)
            bases[key] = network.base
            specs.setdefault(key, {})[name] = _spec(run, agent, network, tokenizers)
    players: dict[str, Language] = {}
    for key, group in specs.items():
        engine = run.generator.build(bases[key], group)
        engine.follow(_sources(bases[key], learners, networks))
        for name, spec in group.items():
            players[name] = language_player(run, name, engine, spec, learners)
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


def _spec(run: ResolvedRun, agent: str, network: Network, tokenizers: Tokenizers) -> AgentSpec:
    key = NetworkKey("actor", run.config.language_agents[agent].model)
    field = f"{key.section}.path"
    words = network.base.config.vocab_size
    check_vocabulary(tokenizers.load(run.path(key), field=field), words, field)
    spec = agent_spec(
        run, agent, tokenizers, adapter=network.adapter, positions=network.base.positions
    )
    spec.chat_format.check_embedded(words, field)
    return spec
