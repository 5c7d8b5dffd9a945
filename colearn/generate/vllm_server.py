"""Engine that uses a vLLM server. Token ids are sent over HTTP, LoRA adapters are selected by name,
and full weights are sent through files or a device transfer."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from colearn.agents import AgentSpec
from colearn.contract import TokenAnswer, TokenRequest, WeightUpdate
from colearn.errors import ConfigError, MissingExtra, ServerLost
from colearn.models.base import Base
from colearn.text.notes import note

from .checked_engine import BadSample, CheckedEngine
from .device_transfer import (
    FIELD,
    Transfer,
    transfer_to_running,
    transfer_to_start,
)
from .model_folder import write_model
from .ranks import Ranks
from .server_answers import BadAnswer, read_generated
from .server_link import ServerLink, ServerRefused
from .server_process import ServerProcess, ServerStart, free_port
from .vllm import check_heads, check_temperature
from .vllm_server_checks import GENERATE, URL, adapters_of, check_server, slots_of
from .vllm_server_command import server_command, server_environment, server_sleeps
from .vllm_server_weights import ServedWeights

_IN_USE: set[str] = set()
"""URLs of the servers to which an engine of this process writes."""


class VLLMServerEngine(CheckedEngine):
    """One vLLM server for one base: a running server at `url`, or a server that this engine starts.

    Each version of an adapter has a separate name, so a restarted server does not know the current
    name and reports an error. Full weights have a version name, and every answer of the server
    contains this name.

    The processes of a run share the server. The first process starts, checks and writes; the other
    processes wait. Each process sends its own requests.

    Errors: ConfigError for a server with another model or tokenizer, or without a needed option;
    ServerLost as in `end`. Errors of the first process are raised in all processes.
    """

    name = "the vLLM server"

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        url: str | None,
        start: ServerStart,
        *,
        folder: str | None = None,
        request_minutes: float = 15.0,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(base, roles, tolerance=tolerance)
        names = adapters_of(roles)
        self._taken = False
        self._process: ServerProcess | None = None
        self._temporary = TemporaryDirectory(prefix="colearn-vllm-", dir=folder)
        self._folder = Path(self._temporary.name)
        self._starts = url is None
        self._sleeps = server_sleeps(base, start) if self._starts else False
        self._asleep = False
        self._ranks = Ranks()
        url = url or self._ranks.by_first(lambda: f"http://127.0.0.1:{free_port()}")
        self.link = ServerLink(
            url, timeout=60 * request_minutes, token=os.environ.get("VLLM_API_KEY")
        )
        self._weights = ServedWeights(self.link, base, names, self._folder, self._ranks)
        try:
            self._base_name, self._length, way = self._ranks.by_first(partial(self._begin, start))
            if start.max_length is not None:
                self._length = min(self._length, start.max_length)
            self._take()
            with self._log_kept():
                self._weights.begin(way, zeros=slots_of(roles) > len(names))
        except BaseException:
            self.close()
            raise

    @property
    def max_length(self) -> int:
        return self._length

    @classmethod
    def check_role(cls, agent: str, role: AgentSpec) -> None:
        super().check_role(agent, role)
        check_temperature(agent, role)

    async def submit(self, request: TokenRequest) -> list[TokenAnswer]:
        """Answer a request. Errors: as for `singles` and `end`."""
        singles = self.singles(request)
        return await self.send(singles) if singles else []

    async def send(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer concurrent requests with one seed each. Errors: as for `end`."""
        started = time.perf_counter()
        begun = self.begin(requests)
        with self.busy("generate"), suppress(ServerLost, ServerRefused):  # `end` raises them
            await asyncio.wrap_future(begun)
        seconds = time.perf_counter() - started
        return [replace(answer, seconds=seconds) for answer in self.end(begun, requests)]

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answer requests. Errors: as for `end`."""
        return self.end(self.begin(requests), requests)

    def begin(self, requests: Sequence[TokenRequest]) -> Future[list[Any]]:
        """Send requests; cancelling the future cancels the requests."""
        self._wake()
        return self.link.begin(GENERATE, [self._body(request) for request in requests])

    def end(self, begun: Future[list[Any]], requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Wait for the answers to requests.

        Errors: ServerLost if the server ends or hangs, aborts a request, does not sample with the
        weights of the last `load`, or returns an action that the request does not allow.
        """
        with self._log_kept():
            try:
                answers = self.link.wait(begun)
            except ServerRefused as error:
                if error.status == 404:
                    self.link.lost(f"has lost this run's weights ({error}): it was restarted")
                self.link.lost(f"cannot generate ({error})")
            return [
                self._read(answer, request)
                for answer, request in zip(answers, requests, strict=True)
            ]

    def write(self, updates: Sequence[WeightUpdate]) -> None:
        """Load updates. Errors: ServerLost if the server does not accept the weights."""
        with self._log_kept():
            self._ranks.by_first(self._wake)
            self._asleep = False
            self._weights.write(updates)

    def rest(self) -> None:
        """Let a server on the trainer's device release its memory until the next request.

        Errors: ServerLost if the server does not release its memory.
        """
        if self._sleeps and not self._asleep:
            with self._log_kept():
                self._ranks.by_first(partial(self._command, "/sleep?level=1"))
            self._asleep = True

    def _wake(self) -> None:
        """Wake the server from sleep. The process that sends the first request calls this method;
        further calls have no effect."""
        if self._asleep:
            with self._log_kept():
                self._command("/wake_up")
            self._asleep = False

    def _command(self, path: str) -> None:
        try:
            self.link.call("POST", path)
        except ServerRefused as error:
            self.link.lost(f"does not answer {path} ({error})")

    def check(self) -> None:
        """Check parity in the first process only. One process is enough, because all processes have
        the same weights and each answer names the version of the server's weights."""
        check = super().check

        def gap() -> float | None:
            check()
            return self.gap

        self.gap = self._ranks.by_first(gap)

    def close(self) -> None:
        """Unload the run's adapters, close the connections, and stop the server if this engine
        started it."""
        if self._taken:
            _IN_USE.remove(self.link.url)
            self._taken = False
        self._weights.close(unload=self._process is None)
        self.link.close()
        if self._process is not None:
            self._process.close()
        self._temporary.cleanup()

    def _begin(self, start: ServerStart) -> tuple[str, int, Transfer]:
        """Start the server if necessary, and check it. Returns the name of the served base, the
        maximum history length in tokens, and the transfer method for full weights.

        Errors: as for this class.
        """
        processes = self._ranks.count
        if self._starts:
            chosen = transfer_to_start(self.base, start, processes=processes)
            with self._log_kept():
                self._start(self.roles, start, chosen.way)
        served = check_server(self.link, self.base, self.roles)
        if not self._starts:
            chosen = transfer_to_running(
                self.base, start.transfer, served.transfer, processes=processes
            )
        if chosen.reason and not adapters_of(self.roles):
            note(f"{FIELD}: {chosen.way}, because {chosen.reason}; files always works")
        return served.name, served.longest, chosen.way

    def _start(self, roles: Mapping[str, AgentSpec], start: ServerStart, way: Transfer) -> None:
        """Start a server with the live weights and wait until the server answers.

        Errors: MissingExtra without vLLM; ConfigError as `check_heads`; ColearnError with the
        server's reason if the server ends.
        """
        if start.python is None and importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        check_heads(self.base)
        model = self._folder / "model"
        write_model(model, self.base, next(iter(roles.values())).chat_format.tokenizer)
        port = self.link.url.rpartition(":")[2]
        self._process = ServerProcess(
            server_command(self.base, roles, start, model, port, transfer=way),
            environment=server_environment(self.base, roles, start, transfer=way),
            log=self._folder / "server.log",
        )
        deadline = time.monotonic() + 60 * start.minutes
        while True:
            try:
                self.link.call("GET", "/health", timeout=5)
                return
            except (ServerLost, ServerRefused):
                if not self._process.running:
                    raise self._process.failed() from None
                if time.monotonic() > deadline:
                    self.link.lost(f"did not start within {start.minutes:g} minutes")
            time.sleep(0.5)

    @contextmanager
    def _log_kept(self) -> Iterator[None]:
        """Context that, if a server started by this engine is lost, keeps the server's log and
        names the log file in the error."""
        try:
            yield
        except ServerLost as error:
            if self._process is None:
                raise
            with_log = ServerLost(f"{error}; its log: {self._process.keep_log()}")
            with_log.everywhere = error.everywhere
            raise with_log from None

    def _take(self) -> None:
        """Claim the server. Errors: ConfigError if another model of this run writes to this
        server."""
        if self.link.url in _IN_USE:
            raise ConfigError(
                f"{URL}: two models share the server at {self.link.url}; give each its own by "
                "url: {AGENT: URL}, or train adapters of one base"
            )
        _IN_USE.add(self.link.url)
        self._taken = True

    def _body(self, request: TokenRequest) -> dict[str, Any]:
        sampling = request.sampling
        return {
            "model": self._weights.served(self.adapter(request.agent)) or self._base_name,
            "token_ids": request.history.ids.tolist(),
            "sampling_params": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k or 0,
                "max_tokens": sampling.max_tokens,
                "seed": request.seeds[0],
                "logprobs": 0,
                "stop": list(sampling.stop),
                "stop_token_ids": self.end_ids(request),
                "ignore_eos": True,  # the request alone names the ids that end an action
                "detokenize": bool(sampling.stop),
                "skip_special_tokens": False,  # a stop string may be a tag that is one
            },
        }

    def _read(self, answer: Any, request: TokenRequest) -> TokenAnswer:
        try:
            draw = read_generated(
                answer,
                prompt=len(request.history),
                vocabulary=self.vocabulary,
                version=self._weights.version,
            )
            return self.answer(request, draw.tokens, draw.logprobs, cached=draw.cached)
        except (BadAnswer, BadSample) as error:
            self.link.lost(str(error))
