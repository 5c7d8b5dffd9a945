"""Generator kinds: settings and construction of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colearn.contract import EngineNeeds, GeneratorKind, TokenEngine
from colearn.errors import ConfigError, nearest
from colearn.text.launcher import on_one_machine
from colearn.text.masking import masked

from .vllm_options import vllm_needs
from .vllm_settings import ServerSettings, VLLMSettings, check_positive

if TYPE_CHECKING:
    from colearn.config import ResolvedRun
    from colearn.models.base import Base
    from colearn.rollout.agents import AgentSpec


@dataclass(frozen=True, kw_only=True)
class Transformers(GeneratorKind):
    """Decodes with the trained model itself, in this process."""

    batch_agents: bool = True
    """Whether to decode all agents on one base in one batch. If False, each agent has separate
    batches. An agent's logits then do not depend, bit for bit, on other agents' samples, but
    decoding takes 1.1 to 1.9 times as long."""
    max_rows: int | None = None
    """Maximum number of rows (actions) decoded together. When a row ends, a waiting row takes its
    place. None decodes all rows of a call at once."""
    cache_gib: float | None = None
    """Memory limit in GiB for the key/value caches that histories keep between turns. Evicted
    caches are recomputed from token ids. None keeps all caches."""
    copy: bool = False
    """Whether to decode on a copy of the weights. `train.staleness` needs this copy."""
    device: str | None = None
    """Device of the copy; None: the model's device."""
    cuda_graphs: bool = True
    """Whether to record the forward pass of one token once for each batch shape, and to replay the
    recorded pass. The host then launches several hundred kernels at once. The setting has an
    effect only on CUDA devices, and not for models whose rotary frequencies depend on the longest
    row."""

    def __post_init__(self) -> None:
        check_positive(max_rows=self.max_rows, cache_gib=self.cache_gib)
        if self.device is not None and not self.copy:
            raise ConfigError("device: is the copy's; set copy: true, or placement.NAME")

    @property
    def apart(self) -> bool:
        return not self.batch_agents

    @property
    def copies(self) -> bool:
        return self.copy

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        from colearn.models.load import resolve_device

        from .transformers import TransformersEngine

        device = None
        if self.device is not None:
            device = resolve_device(self.device, "run.generator.device")
        return TransformersEngine(
            base,
            roles,
            max_rows=self.max_rows,
            cache_bytes=None if self.cache_gib is None else int(self.cache_gib * 2**30),
            copies=self.copy,
            device=device,
            cuda_graphs=self.cuda_graphs,
        )


@dataclass(frozen=True, kw_only=True)
class VLLM(VLLMSettings, GeneratorKind):
    """A vLLM engine in this process, with one batch for all agents of a base."""

    @property
    def copies(self) -> bool:
        return True

    def needs(self, weights: int, *, memory: int | None) -> EngineNeeds:
        return vllm_needs(weights, self.cache_gib, memory=memory)

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        from .vllm import VLLMEngine

        for agent, role in roles.items():
            VLLMEngine.check_role(agent, role)
        return VLLMEngine(base, roles, self).checked()


@dataclass(frozen=True, kw_only=True)
class VLLMServer(ServerSettings, VLLM):
    """A vLLM server: one that is already running, or one that the run starts for each base. The
    settings that it shares with `vllm` are those of a server that the run starts."""

    url: str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]] | None = None
    """URL of a running server, a list of URLs of servers that share the requests, or a mapping from
    each agent to a URL or such a list. None: the run starts a server and stops it at the end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url is not None and self.sleep:
            raise ConfigError("sleep: a server at a url keeps its memory; leave it out")
        if self.url is not None:
            by_field = self.url if isinstance(self.url, Mapping) else {"": self.url}
            for agent, urls in by_field.items():
                _check_urls(f"url.{agent}" if agent else "url", _listed(urls))

    def check(self, run: ResolvedRun) -> None:
        if isinstance(self.url, Mapping):
            players = [name for group in run.players_by_base for name in group]
            for agent in self.url:
                if agent not in players:
                    raise ConfigError(
                        f"run.generator.url.{agent}: no agent of this name is a language model; "
                        f"{nearest(agent, players)}"
                    )
        owners: dict[str, str] = {}
        for agents in run.players_by_base:
            for url in self._servers_of(agents) or ():
                first = owners.setdefault(url.rstrip("/"), agents[0])
                if first != agents[0]:
                    raise ConfigError(
                        f"run.generator.url: two models share the server at {url}, those of "
                        f"{first} and {agents[0]}; give each its own by url: {{AGENT: URL}}, or "
                        "train adapters of one base"
                    )

    def needs(self, weights: int, *, memory: int | None) -> EngineNeeds:
        if self.url is not None:
            return EngineNeeds(held=0, cache=0)
        return super().needs(weights, memory=memory)

    def places(self, run: ResolvedRun) -> list[str]:
        lines = []
        for agents in run.players_by_base:
            urls = self._servers_of(agents)
            place = "a vLLM server that the run starts" if urls is None else masked(", ".join(urls))
            if urls is not None and len(urls) > 1:
                place = f"{len(urls)} vLLM servers in turn: {place}"
            lines.append(f"generation for {', '.join(agents)}: {place}")
        return lines

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        from .vllm_server import VLLMServerEngine

        if self.url is None and not on_one_machine():
            raise ConfigError(
                "run.generator.url: missing; the run's processes are on several machines, and a "
                "server that one of them starts answers on its machine only; start servers and "
                "list them"
            )
        for agent, role in roles.items():
            VLLMServerEngine.check_role(agent, role)
        return VLLMServerEngine(base, roles, self, self._servers_of([*roles])).checked()

    def _servers_of(self, agents: Sequence[str]) -> tuple[str, ...] | None:
        """URLs of the servers for the agents on one base; None if the run starts the server.

        Errors: ConfigError if the agents have different servers, or if an agent has no server.
        """
        if self.url is None or not isinstance(self.url, Mapping):
            return None if self.url is None else _listed(self.url)
        chosen = set()
        for agent in agents:
            played = agent.rpartition("@")[0]
            if agent in self.url:
                chosen.add(_listed(self.url[agent]))
            elif played not in agents:  # the past self of an adapter is on its agent's server
                remedy = "give each agent a server"
                if played:
                    remedy = "a past self in full weights needs a server; name one, or set lora"
                raise ConfigError(f"run.generator.url.{agent}: missing; {remedy}")
        if len(chosen) > 1:
            raise ConfigError(
                f"run.generator.url: {', '.join(agents)} share one base and so one server; give "
                "them the same URL"
            )
        return chosen.pop()


def _listed(urls: str | tuple[str, ...]) -> tuple[str, ...]:
    return (urls,) if isinstance(urls, str) else tuple(urls)


def _check_urls(field: str, urls: tuple[str, ...]) -> None:
    if not urls:
        raise ConfigError(f"{field}: an empty list; name a server, or leave it out to start one")
    plain = [url.rstrip("/") for url in urls]
    for url in plain:
        if plain.count(url) > 1:
            raise ConfigError(f"{field}: {url} is listed twice; list each server once")
