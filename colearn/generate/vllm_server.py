"""A vLLM server as an engine: ids over HTTP, LoRA adapters by name, full weights by files."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from colearn.models.weight_update import plain_weights

from .checked_engine import BadSample, CheckedEngine
from .model_folder import (
    write_model,
    write_weights,
)
from .ranks import Ranks
from .served_adapters import ServedAdapters
from .server_answers import BadAnswer, CacheReset, read_as, read_generated
from .server_link import ServerLink, ServerRefused
from .server_process import ServerProcess, ServerStart, free_port
from .vllm import check_heads, check_temperature
from .vllm_server_checks import GENERATE, URL, adapters_of, check_server, slots_of
from .vllm_server_command import server_command, server_environment

_IN_USE: set[str] = set()
"""Servers to which an engine of this process writes."""


class VLLMServerEngine(CheckedEngine):
    """One vLLM server for one base: a running one at `url`, or one started here.

    Adapters have one name per version, so that a server that was restarted does not know them.
    Full weights are written to a folder that trainer and server share, under a version that every
    answer repeats.

    The processes of a run share the server: the first one starts, checks and writes, the others
    wait for it; each sends its own requests.

    Errors: ConfigError for a server of another model or tokenizer, or without a needed option;
    ServerLost as in `end`. The first process's are raised in all of them.
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
        self._run = uuid.uuid4().hex[:12]
        self._count = 0
        self._taken = False
        self._tag: str | None = None
        self._process: ServerProcess | None = None
        self._temporary = TemporaryDirectory(prefix="colearn-vllm-", dir=folder)
        self._folder = Path(self._temporary.name)
        self._starts = url is None
        self._ranks = Ranks()
        url = url or self._ranks.by_first(lambda: f"http://127.0.0.1:{free_port()}")
        self.link = ServerLink(
            url, timeout=60 * request_minutes, token=os.environ.get("VLLM_API_KEY")
        )
        self._adapters = ServedAdapters(self.link, base, names, self._folder, self._run)
        try:
            self._base_name, self._length = self._ranks.by_first(partial(self._begin, start))
            if start.max_length is not None:
                self._length = min(self._length, start.max_length)
            self._take()
            self._by_first(self._write_all)
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
        """Errors: as for `singles` and `end`."""
        singles = self.singles(request)
        return await self.send(singles) if singles else []

    async def send(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Answers to concurrent requests of one seed each. Errors: as for `end`."""
        started = time.perf_counter()
        begun = self.begin(requests)
        with self.busy("generate"), suppress(ServerLost, ServerRefused):  # `end` raises them
            await asyncio.wrap_future(begun)
        seconds = time.perf_counter() - started
        return [replace(answer, seconds=seconds) for answer in self.end(begun, requests)]

    def sample(self, requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Errors: as for `end`."""
        return self.end(self.begin(requests), requests)

    def begin(self, requests: Sequence[TokenRequest]) -> Future[list[Any]]:
        """Send requests; cancelling the future cancels them."""
        return self.link.begin(GENERATE, [self._body(request) for request in requests])

    def end(self, begun: Future[list[Any]], requests: Sequence[TokenRequest]) -> list[TokenAnswer]:
        """Wait for the answers to requests.

        Errors: ServerLost if the server ends, hangs, aborts a request, answers with weights other
        than those of the last `load`, or with anything but an action that its request allows.
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
        """Errors: ServerLost if the server does not take the weights."""
        self._by_first(partial(self._write_updates, updates))

    def check(self) -> None:
        """In the first process: all have the same weights, and each answer says its version."""
        check = super().check

        def gap() -> float | None:
            check()
            return self.gap

        self.gap = self._ranks.by_first(gap)

    def close(self) -> None:
        """Unload the run's adapters, close the connections, and end a server started here."""
        if self._taken:
            _IN_USE.remove(self.link.url)
            self._taken = False
        if self._process is None and self._ranks.first:
            self._adapters.unload()
        self.link.close()
        if self._process is not None:
            self._process.close()
        self._temporary.cleanup()

    def _begin(self, start: ServerStart) -> tuple[str, int]:
        """The name of the served base, and its longest history. Errors: as for this class."""
        if self._starts:
            with self._log_kept():
                self._start(self.roles, start)
        return check_server(self.link, self.base, self.roles)

    def _by_first(self, write: Callable[[], None]) -> None:
        """Write to the server in the first process; all know then which weights it has."""

        def written() -> tuple[str | None, dict[str, str]]:
            with self._log_kept():
                write()
            return self._tag, self._adapters.loaded

        self._tag, self._adapters.loaded = self._ranks.by_first(written)

    def _write_all(self) -> None:
        """Give the server the live weights."""
        names = adapters_of(self.roles)
        if names:
            self._mark()
            self._adapters.begin(zeros=slots_of(self.roles) > len(names))
        else:
            self._write_full(plain_weights(self.base))

    def _write_updates(self, updates: Sequence[WeightUpdate]) -> None:
        for update in updates:
            if update.full is not None:
                self._write_full(update.full)
            for name, tensors in update.adapters.items():
                self._adapters.write(name, tensors)

    def _start(self, roles: Mapping[str, AgentSpec], start: ServerStart) -> None:
        """Start a server on the live weights, and wait until it answers.

        Errors: MissingExtra without vLLM; ConfigError as `check_heads`; ColearnError with the
        server's reason if it ends.
        """
        if start.python is None and importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        check_heads(self.base)
        model = self._folder / "model"
        write_model(model, self.base, next(iter(roles.values())).chat_format.tokenizer)
        port = self.link.url.rpartition(":")[2]
        self._process = ServerProcess(
            server_command(self.base, roles, start, model, port),
            environment=server_environment(self.base, start),
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
        """If a server started here is lost, keep its log and name it in the error."""
        try:
            yield
        except ServerLost as error:
            if self._process is None:
                raise
            raise ServerLost(f"{error}; its log: {self._process.keep_log()}") from None

    def _take(self) -> None:
        """Errors: ConfigError if another model of this run writes its weights to this server."""
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
            "model": self._adapters.served(self.adapter(request.agent)) or self._base_name,
            "token_ids": request.history.ids.tolist(),
            "sampling_params": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k or 0,
                "max_tokens": sampling.max_tokens,
                "seed": request.seeds[0],
                "logprobs": 0,
                "stop": list(sampling.stop),
                "stop_token_ids": sorted(self.end_ids(request)),
                "ignore_eos": True,  # the request alone names the ids that end an action
                "detokenize": bool(sampling.stop),
            },
        }

    def _read(self, answer: Any, request: TokenRequest) -> TokenAnswer:
        vocabulary = self.base.config.get_text_config().vocab_size
        try:
            draw = read_generated(
                answer, prompt=len(request.history), vocabulary=vocabulary, version=self._tag
            )
            return self.answer(request, draw.tokens, draw.logprobs, cached=draw.cached)
        except (BadAnswer, BadSample) as error:
            self.link.lost(str(error))

    def _write_full(self, weights: Mapping[str, Any]) -> None:
        self._count += 1
        folder = self._folder / f"weights-{self._count}"
        write_weights(folder, weights, self.base.compute)
        try:
            self._remote("reload_weights", weights_path=str(folder))
            # a server that has loaded nothing yet may still answer from blocks of old weights
            if not read_as(CacheReset, self._post("/reset_prefix_cache")).success:
                self.link.lost("kept cache blocks of the old weights: other requests are running")
        except ServerRefused as error:
            self.link.lost(f"does not take the trained model's weights ({error})")
        except BadAnswer as error:
            self.link.lost(str(error))
        finally:
            shutil.rmtree(folder)
        self._mark()

    def _mark(self) -> None:
        """Give the server's weights a version that no other process has."""
        self._tag = f"{self._run}-{self._count}"
        try:
            self._post("/update_weight_version", new_version=self._tag)
        except ServerRefused as error:
            self.link.lost(f"does not take a version of its weights ({error})")

    def _remote(self, method: str, **arguments: str) -> None:
        self.link.call("POST", "/collective_rpc", {"method": method, "kwargs": arguments})

    def _post(self, path: str, **body: Any) -> Any:
        return self.link.call("POST", path, body)
