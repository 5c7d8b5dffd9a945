"""A host whose models are in worker processes; models that share a base share a worker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from colearn.agents import AgentSpec
from colearn.config import ResolvedRun
from colearn.contract import Hosted, ModelHost, NetworkKey
from colearn.contract.host import Given, in_threads
from colearn.models.build_networks import TeamBuilder
from colearn.models.load import Tokenizers
from colearn.models.network import Network

from .links import Call, WorkerLink
from .local import chat_of
from .model_worker import Rank, WorkerPlayer
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


class RemoteHost(ModelHost):
    """Host of models in workers. Workers load their models concurrently. Models in different
    workers are updated, and generate, concurrently. For exact evaluation, this process holds a copy
    of every actor."""

    def __init__(self, run: ResolvedRun, tokenizers: Tokenizers, workers: Workers) -> None:
        groups = sharing(run)
        self._workers, self._links = workers, []
        self._pool = ThreadPoolExecutor(len(groups), thread_name_prefix="worker")
        try:
            self._links = links = [
                WorkerLink(calls) for calls in workers.start([named(group) for group in groups])
            ]
            built: list[tuple[dict[str, WorkerPlayer], dict[NetworkKey, int]]] = list(
                self._pool.map(lambda link, group: _built(run, link, group), links, groups)
            )
            self.networks = _copies(run) if run.config.evaluation.exact else {}
        except BaseException:
            self._end()
            raise
        self._link_of = {
            key: link for link, group in zip(links, groups, strict=True) for key in group
        }
        self.learners = {key: RemoteLearner(key, self._link_of[key]) for key in run.learners}
        self.copies = {
            key: RemoteCopy(key, self._link_of[key])
            for key in run.networks
            if key.kind in ("reference", "past")
        }
        self._parameters = {key: n for _, sizes in built for key, n in sizes.items()}
        self.players = {}
        for link, (players, _) in zip(links, built, strict=True):
            numbers = dict.fromkeys(seat.engine for seat in players.values())
            engines = {n: RemoteEngine(link, n, link("versions", n)) for n in numbers}
            for name, seat in players.items():
                spec = AgentSpec(
                    **run.config.language_agents[seat.agent].spec_fields,
                    chat=chat_of(run, seat.agent, tokenizers),
                    adapter=seat.adapter,
                    positions=seat.positions,
                )
                self.players[name] = Hosted(seat.agent, engines[seat.engine], spec)

    @property
    def parameters(self) -> Mapping[NetworkKey, int]:
        return self._parameters

    @torch.no_grad()
    def fetch(self) -> None:
        for key, network in self.networks.items():
            if key in self.learners:
                weights = network.trained()
                for name, weight in self.learners[key].weights().items():
                    weights[name].copy_(weight)
                network.base.revision += 1

    def together(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        return in_threads(self._pool, calls, lambda key: id(self._link_of[key]))

    def close(self) -> None:
        """Close all workers. Errors: ModelLost if a worker had already ended; the other workers are
        still closed."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._end)
            for link in self._links:
                stack.callback(link, "close")

    def _end(self) -> None:
        self._pool.shutdown()
        self._workers.close()
        for link in self._links:
            link.close()


class _OnCPU(TeamBuilder):
    """Builds networks on the CPU, because the machine of the run's main process may have no other
    device."""

    def _device(self, key: NetworkKey) -> torch.device:
        return torch.device("cpu")


def _copies(run: ResolvedRun) -> dict[NetworkKey, Network]:
    return _OnCPU(run).build([key for key in run.networks if key.kind == "actor"])


def _built(
    run: ResolvedRun, link: WorkerLink, group: Sequence[NetworkKey]
) -> tuple[dict[str, WorkerPlayer], dict[NetworkKey, int]]:
    """Call `ModelWorker.build` in every process of a worker; returns the result of the first
    process."""
    ranks: list[Rank | None] = [None]
    if (count := len(link.processes)) > 1:
        address, port = link.processes[0]("meeting_place")
        ranks = [Rank(number, count, address, port) for number in range(count)]
    built: tuple[dict[str, WorkerPlayer], dict[NetworkKey, int]] = link.each(
        "build", [(run.config, run.agents, group, rank) for rank in ranks]
    )[0]
    return built


def sharing(run: ResolvedRun) -> list[list[NetworkKey]]:
    """Returns the run's networks in groups of networks that share memory. A group consists of an
    actor and its copies, or of all actors and critics that share the frozen weights of one base."""
    groups: dict[object, list[NetworkKey]] = {}
    group_of: dict[NetworkKey, object] = {}
    for key in run.networks:
        if key.kind in ("reference", "past"):
            group: object = group_of[NetworkKey("actor", key.model)]
        else:
            group = run.base_of(key)
        group_of[key] = group
        groups.setdefault(group, []).append(key)
    return list(groups.values())


def named(group: Sequence[NetworkKey]) -> str:
    """A worker's name in errors, composed of the names of its actors and critics."""
    return ", ".join(str(key) for key in group if key.kind in ("actor", "critic"))
