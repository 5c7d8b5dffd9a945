"""Generator kinds: settings and construction of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from colearn.contract import EngineNeeds, GeneratorKind, TokenEngine
from colearn.errors import ConfigError, nearest
from colearn.text.launcher import on_one_machine
from colearn.text.masking import masked

from .vllm_start import vllm_needs

if TYPE_CHECKING:
    from colearn.agents import AgentSpec
    from colearn.config import ResolvedRun
    from colearn.models.base import Base


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
    recorded pass. The host then launches about a thousand kernels at once. The setting has an
    effect only on CUDA devices, and not for models whose rotary frequencies depend on the longest
    row."""

    def __post_init__(self) -> None:
        _check_positive(max_rows=self.max_rows, cache_gib=self.cache_gib)
        if self.device is not None and not self.copy:
            raise ConfigError("device: is the copy's; set copy: true, or models.NAME.device")

    @property
    def apart(self) -> bool:
        return not self.batch_agents

    @property
    def copies(self) -> bool:
        return self.copy

    @property
    def replays(self) -> bool:
        return self.cuda_graphs

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
class VLLM(GeneratorKind):
    """A vLLM engine in this process, with one batch for all agents of a base."""

    cache_gib: float | None = None
    """Memory of the key/value cache in GiB; None: 1 GiB on the CPU, a tenth of the memory of other
    devices."""
    max_length: int | None = None
    """Maximum length of a history in tokens; None: the model's maximum, or less if the cache cannot
    hold it."""
    max_rows: int = 256
    """Maximum number of rows decoded together."""
    eager: bool | None = None
    """Skip compilation and graph capture: a faster start and slower decoding. None: on the CPU
    only."""
    sleep: bool | None = None
    """Whether to release device memory during updates. None releases device memory only on CUDA
    devices."""
    tolerance: float | None = None
    """Maximum gap in nats to the trained model's log-probabilities; None: depends on the dtype."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `vllm.LLM`, passed unchanged."""

    def __post_init__(self) -> None:
        _check_positive(
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            tolerance=self.tolerance,
        )

    @property
    def copies(self) -> bool:
        return True

    def needs(self, weights: int, *, memory: int | None) -> EngineNeeds:
        return vllm_needs(weights, self.cache_gib, self.max_rows, memory=memory)

    def build(self, base: Base, roles: Mapping[str, AgentSpec]) -> TokenEngine:
        from .vllm import VLLMEngine

        for agent, role in roles.items():
            VLLMEngine.check_role(agent, role)
        return VLLMEngine(
            base,
            roles,
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            eager=self.eager,
            sleep=self.sleep,
            options=self.options,
            tolerance=self.tolerance,
        ).checked()


@dataclass(frozen=True, kw_only=True)
class VLLMServer(GeneratorKind):
    """A vLLM server: one that is already running, or one that the run starts for each base."""

    url: str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]] | None = None
    """URL of a running server, a list of URLs of servers that share the requests, or a mapping from
    each agent to a URL or such a list. None: the run starts a server and stops it at the end."""
    folder: str | None = None
    """Folder on a file system that trainer and server share; None: this machine's temporary
    folder."""
    python: str | None = None
    """Python interpreter with which the run starts a server; its environment must have vLLM. None:
    the current interpreter."""
    gpus: str | None = None
    """GPUs of a started server, as in CUDA_VISIBLE_DEVICES; None: the GPUs of this process."""
    cache_gib: float | None = None
    """Memory of a started server's key/value cache in GiB. None selects 1 GiB on the CPU, a tenth
    of the device's memory if server and trainer share a device, and vLLM's default on separate
    devices."""
    max_length: int | None = None
    """Maximum length of a history in tokens; None: the server's limit."""
    max_rows: int = 256
    """Maximum number of rows that a started server decodes together."""
    arguments: tuple[str, ...] = ()
    """Further command-line arguments of a started server."""
    transfer: Literal["files", "ipc", "nccl"] | None = None
    """Method of sending full weights to a server: through files, through shared memory on one
    device (`ipc`), or through NCCL. If None, the run chooses the fastest available method and
    prints the choice. Adapters are always sent as files."""
    sleep: bool | None = None
    """Whether a started server releases device memory during updates. None: only on a CUDA device
    that the server shares with its trainer."""
    tolerance: float | None = None
    """Maximum gap in nats to the trained model's log-probabilities; None: depends on the dtype."""
    start_minutes: float = 15.0
    """Timeout in minutes for the start of a server."""
    request_minutes: float = 15.0
    """Timeout in minutes for a single request."""

    def __post_init__(self) -> None:
        _check_positive(
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            tolerance=self.tolerance,
            start_minutes=self.start_minutes,
            request_minutes=self.request_minutes,
        )
        if self.url is not None and self.sleep:
            raise ConfigError("sleep: a server at a url keeps its memory; leave it out")
        if self.url is not None:
            by_field = self.url if isinstance(self.url, Mapping) else {"": self.url}
            for agent, urls in by_field.items():
                _check_urls(f"url.{agent}" if agent else "url", _listed(urls))

    @property
    def copies(self) -> bool:
        return True

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
            return EngineNeeds(held=0, cache=None, rows=self.max_rows, apart=True)
        needed = vllm_needs(weights, self.cache_gib, self.max_rows, memory=memory)
        return replace(needed, apart=True)

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
        from .server_process import ServerStart
        from .several_servers import SeveralServers
        from .vllm_server import VLLMServerEngine

        if self.url is None and not on_one_machine():
            raise ConfigError(
                "run.generator.url: missing; the run's processes are on several machines, and a "
                "server that one of them starts answers on its machine only; start servers and "
                "list them"
            )
        for agent, role in roles.items():
            VLLMServerEngine.check_role(agent, role)
        start = ServerStart(
            python=self.python,
            gpus=self.gpus,
            cache_gib=self.cache_gib,
            max_length=self.max_length,
            max_rows=self.max_rows,
            arguments=self.arguments,
            minutes=self.start_minutes,
            transfer=self.transfer,
            sleep=self.sleep,
        )

        def connect(url: str | None) -> VLLMServerEngine:
            return VLLMServerEngine(
                base,
                roles,
                url,
                start,
                folder=self.folder,
                request_minutes=self.request_minutes,
                tolerance=self.tolerance,
            )

        urls = self._servers_of([*roles])
        if urls is None or len(urls) == 1:
            return connect(None if urls is None else urls[0]).checked()
        return SeveralServers(base, roles, connect, urls, tolerance=self.tolerance).checked()

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


def _check_positive(**settings: float | None) -> None:
    for name, number in settings.items():
        if number is not None and number <= 0:
            raise ConfigError(f"{name}: must be above 0, got {number}")
