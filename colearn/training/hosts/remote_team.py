"""Builds a team whose models are in worker processes; models that share a base share a worker."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import torch

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.contract.host import in_threads
from colearn.models.build_networks import NetworkBuilder
from colearn.models.load import Tokenizers
from colearn.models.network import Network
from colearn.rollout.agents import Language
from colearn.training.players import agent_spec, language_player
from colearn.training.team import Team

from .links import Call, WorkerLink
from .model_worker import Rank, WorkerModels
from .remote_models import RemoteCopy, RemoteEngine, RemoteLearner


class Workers(Protocol):
    """A set of workers. A worker has one or several processes, and every process holds a
    `ModelWorker`."""

    def start(self, groups: Sequence[str]) -> list[list[Call]]:
        """Start one worker for each group of models. For each worker, returns one function per
        process; the function calls methods of that process. `groups` are the workers' names in
        errors.

        Errors: ConfigError if there are not enough resources for the workers.
        """

    def close(self) -> None:
        """End the workers."""


def remote_team(run: ResolvedRun, tokenizers: Tokenizers, workers: Workers) -> Team:
    """Load the models of a run in workers. Workers load their models concurrently. Models in
    different workers are updated, and generate, concurrently. For exact evaluation, this process
    holds a copy of every actor.

    Closing the team closes all workers. Errors: ModelLost if a worker had already ended; the other
    workers are still closed.
    """
    groups = sharing(run)
    with contextlib.ExitStack() as resources:
        resources.callback(workers.close)
        links = [WorkerLink(calls) for calls in workers.start([named(group) for group in groups])]
        for link in links:
            resources.callback(link.close)
        pool = ThreadPoolExecutor(len(groups), thread_name_prefix="worker")
        resources.callback(pool.shutdown)
        built = list(pool.map(lambda link, group: _built(run, link, group), links, groups))
        networks = _copies(run) if run.config.evaluation.exact else {}
        for link in links:
            resources.callback(link, "close")
        link_of = {key: link for link, group in zip(links, groups, strict=True) for key in group}
        sizes = {key: size for model in built for key, size in model.sizes.items()}
        learners = {
            key: RemoteLearner(key, link_of[key], sizes[key], networks.get(key))
            for key in run.learners
        }
        players: dict[str, Language] = {}
        for link, model in zip(links, built, strict=True):
            numbers = dict.fromkeys(player.engine for player in model.players.values())
            engines = {n: RemoteEngine(link, n, link("versions", n)) for n in numbers}
            for name, player in model.players.items():
                spec = agent_spec(
                    run,
                    run.speakers[name][0],
                    tokenizers,
                    adapter=player.adapter,
                    positions=player.positions,
                )
                players[name] = language_player(run, name, engines[player.engine], spec, learners)
        return Team(
            run=run,
            tokenizers=tokenizers,
            networks=networks,
            learners=learners,
            copies={
                key: RemoteCopy(key, link_of[key])
                for key in run.networks
                if key.kind in ("reference", "teacher", "past")
            },
            players=players,
            together=partial(in_threads, pool, group=lambda key: id(link_of[key])),
            resources=resources.pop_all(),
        )


class _OnCPU(NetworkBuilder):
    """Builds networks on the CPU, because the machine of the run's main process may have no other
    device."""

    def _device(self, key: NetworkKey) -> torch.device:
        return torch.device("cpu")


def _copies(run: ResolvedRun) -> dict[NetworkKey, Network]:
    return _OnCPU(run).build([key for key in run.networks if key.kind == "actor"])


def _built(run: ResolvedRun, link: WorkerLink, group: Sequence[NetworkKey]) -> WorkerModels:
    """Call `ModelWorker.build` in every process of a worker; returns the result of the first
    process."""
    ranks: list[Rank | None] = [None]
    if (count := len(link.processes)) > 1:
        address, port = link.processes[0]("meeting_place")
        ranks = [Rank(number, count, address, port) for number in range(count)]
    built: WorkerModels = link.each(
        "build", [(run.config, run.agents, group, rank) for rank in ranks]
    )[0]
    return built


def sharing(run: ResolvedRun) -> list[list[NetworkKey]]:
    """Returns the run's networks in groups of networks that share memory. A group consists of an
    actor and its copies, or of all actors and critics that share the frozen weights of one base."""
    groups: dict[object, list[NetworkKey]] = {}
    group_of: dict[NetworkKey, object] = {}
    for key in run.networks:
        if key.kind in ("reference", "teacher", "past"):
            group: object = group_of[NetworkKey("actor", key.model)]
        else:
            group = run.base_of(key)
        group_of[key] = group
        groups.setdefault(group, []).append(key)
    return list(groups.values())


def named(group: Sequence[NetworkKey]) -> str:
    """A worker's name in errors, composed of the names of its actors and critics."""
    return ", ".join(str(key) for key in group if key.kind in ("actor", "critic"))
