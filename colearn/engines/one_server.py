"""One vLLM server of a run: its process, its weights, and the requests that it answers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from colearn.contract import WeightUpdate
from colearn.errors import MissingExtra, ServerLost
from colearn.models.base import Base
from colearn.models.weight_update import each_once, plain_weights
from colearn.rollout.agents import AgentSpec

from .model_folder import write_model, write_weights
from .server_answers import BadAnswer, CacheReset, ListedModels, read_as
from .server_link import ServerLink, ServerRefused
from .server_process import ServerProcess
from .vllm_adapters import LoadedAdapter, VLLMAdapters
from .vllm_options import command_line, engine_options, runner_variables, sleeps
from .vllm_server_checks import GENERATE, check_server
from .vllm_settings import ServerSettings

_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # `python -m` would import files of the current folder first
    "VLLM_SERVER_DEV_MODE": "1",  # weight updates and versions
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
_OPTIONS: Mapping[str, Any] = {
    "host": "127.0.0.1",
    "served_model_name": "base",
    "enable_scale_out": True,
    "enable_prompt_tokens_details": True,
    "worker_extension_cls": "colearn.engines.vllm_worker.WorkerExtension",
}
_LOAD, _UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"


class Held(NamedTuple):
    """What a server holds, as the process that writes to the server tells the others."""

    base: str
    """Name of the served base."""
    longest: int
    """Maximum length of a history in tokens."""
    version: str
    """Version name of the weights, unique to this run."""
    adapters: dict[str, LoadedAdapter]


class OneServer:
    """A server at `url`, which `begin` starts if `starts` is true.

    Every process of a run may send requests. Only one process begins and writes; the others
    `follow` what the server then holds. Files are written to `folder`, which trainer and server
    share. Each version of an adapter has a separate name, so a restarted server does not know the
    current name and reports an error. Full weights have a version name, and every answer of the
    server contains this name.
    """

    def __init__(
        self,
        base: Base,
        roles: Mapping[str, AgentSpec],
        settings: ServerSettings,
        url: str,
        folder: Path,
        *,
        starts: bool,
    ) -> None:
        self._base, self._roles, self._settings = base, roles, settings
        self._folder, self._starts = folder, starts
        self.sleeps = starts and sleeps(settings.sleep, base, beside=settings.gpus is None)
        self.asleep = False
        self.process: ServerProcess | None = None
        self._run, self._count = uuid.uuid4().hex[:12], 0
        self.link = ServerLink(
            url, timeout=60 * settings.request_minutes, token=os.environ.get("VLLM_API_KEY")
        )
        self._adapters = VLLMAdapters(
            base, roles, folder, self._run, load=self._load_adapter, unload=self._unload_adapter
        )
        self.follow(Held("", 0, "", {}))

    def follow(self, held: Held) -> None:
        """Take over what the server holds from the process that writes."""
        self._base_name, self.max_length, self.version, self._adapters.loaded = held

    def model_of(self, adapter: str | None) -> str:
        """The server's name for an adapter, or for the base if requests use no adapter."""
        loaded = self._adapters.of(adapter)
        return self._base_name if loaded is None else loaded.name

    def begin_requests(self, bodies: Sequence[Mapping[str, Any]]) -> Future[list[Any]]:
        """Send requests for tokens; cancelling the future cancels the requests."""
        with self.log_kept():
            self._wake()
        return self.link.begin(GENERATE, bodies)

    def end_requests(self, begun: Future[list[Any]]) -> list[Any]:
        """Wait for the answers, in order. Errors: ServerLost if the server ends or hangs, or
        refuses a request."""
        try:
            return self.link.wait(begun)
        except ServerRefused as error:
            if error.status == 404:
                self.link.lost(f"has lost this run's weights ({error}): it was restarted")
            self.link.lost(f"cannot generate ({error})")

    def begin(self) -> Held:
        """Start the server if necessary, check it and send the live weights.

        Errors: MissingExtra without vLLM; ConfigError for a server with another model or tokenizer,
        or without a needed option; ColearnError with the server's reason if the server ends;
        ServerLost as for `write`.
        """
        with self.log_kept():
            if self._starts:
                self._start()
            served = check_server(self.link, self._base, self._roles)
            if self._adapters.names:
                self._mark()
                self._adapters.begin()
            else:
                self._write_full(plain_weights(self._base))
        self._base_name = served.name
        self.max_length = min(served.longest, self._settings.max_length or served.longest)
        return self._held

    def write(self, updates: Sequence[WeightUpdate]) -> Held:
        """Send updates to the server. Errors: ServerLost if the server does not accept the
        weights."""
        with self.log_kept():
            self._wake()
            for update in updates:
                if update.full is not None:
                    self._write_full(update.full)
                for name, tensors in update.adapters.items():
                    self._adapters.write(name, tensors)
        return self._held

    @property
    def _held(self) -> Held:
        return Held(self._base_name, self.max_length, self.version, self._adapters.loaded)

    def rest(self) -> None:
        """Let the server release its memory. Errors: ServerLost if it does not."""
        with self.log_kept():
            self._command("/sleep?level=1")

    def _wake(self) -> None:
        """Wake the server from sleep. The process that sends the first request calls this method;
        further calls have no effect."""
        if self.asleep:
            self._command("/wake_up")
            self.asleep = False

    def close(self, *, first: bool) -> None:
        """Close the connections. The process that writes stops a server that it started, and
        unloads the run's adapters from a server that continues to run."""
        if first and self.process is None:
            self._unload_all()
        self.link.close()
        if self.process is not None:
            self.process.close()

    @contextmanager
    def log_kept(self) -> Iterator[None]:
        """Context that, if a server started by this process is lost, keeps the server's log and
        names the log file in the error."""
        try:
            yield
        except ServerLost as error:
            if self.process is None:
                raise
            raise ServerLost(f"{error}; its log: {self.process.keep_log()}") from None

    def _start(self) -> None:
        settings = self._settings
        if settings.python is None and importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        model = self._folder / "model"
        command = server_command(
            self._base, self._roles, settings, model, self.link.url.rpartition(":")[2]
        )
        write_model(model, self._base, next(iter(self._roles.values())).chat_format.tokenizer)
        self.process = ServerProcess(
            command,
            environment=server_environment(self._base, self._roles, settings),
            log=self._folder / "server.log",
        )
        deadline = time.monotonic() + 60 * settings.start_minutes
        while True:
            try:
                self.link.call("GET", "/health", timeout=5)
                return
            except (ServerLost, ServerRefused):
                if not self.process.running:
                    raise self.process.failed() from None
                if time.monotonic() > deadline:
                    self.link.lost(f"did not start within {settings.start_minutes:g} minutes")
            time.sleep(0.5)

    def _write_full(self, weights: Mapping[str, Tensor]) -> None:
        self._count += 1
        try:
            self._write_files(weights)
            # a server that has loaded nothing yet may still answer from blocks of old weights
            if not read_as(CacheReset, self.link.call("POST", "/reset_prefix_cache")).success:
                self.link.lost("kept cache blocks of the old weights: other requests are running")
        except ServerRefused as error:
            self.link.lost(f"does not take the trained model's weights ({error})")
        except BadAnswer as error:
            self.link.lost(str(error))
        self._mark()

    def _write_files(self, weights: Mapping[str, Tensor]) -> None:
        """Send full weights as files. Errors: ServerRefused if the server does not accept the
        weights."""
        folder = self._folder / f"weights-{self._count}"
        # on the CPU a tied head keeps a packed copy, which is made anew from its own name only
        named = weights if self._base.device.type == "cpu" else each_once(weights)
        write_weights(folder, named, self._base.compute)
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        try:
            self.link.call("POST", "/collective_rpc", body)
        finally:
            shutil.rmtree(folder)

    def _mark(self) -> None:
        """Set a version name, which no other run uses, for the server's weights."""
        self.version = f"{self._run}-{self._count}"
        try:
            self.link.call("POST", "/update_weight_version", {"new_version": self.version})
        except ServerRefused as error:
            self.link.lost(f"does not take a version of its weights ({error})")

    def _command(self, path: str) -> None:
        try:
            self.link.call("POST", path)
        except ServerRefused as error:
            self.link.lost(f"does not answer {path} ({error})")

    def _load_adapter(self, adapter: LoadedAdapter) -> None:
        body = {"lora_name": adapter.name, "lora_path": adapter.folder}
        try:
            self._change(_LOAD, body, present=True)
        except ServerRefused as error:
            self.link.lost(f"does not take adapter '{adapter.adapter}' ({error})")

    def _unload_adapter(self, adapter: LoadedAdapter) -> None:
        try:
            self._change(_UNLOAD, {"lora_name": adapter.name}, present=False)
        except ServerRefused as error:
            self.link.lost(f"does not unload adapter '{adapter.adapter}' ({error})")

    def _unload_all(self) -> None:
        for adapter in self._adapters.loaded.values():
            try:
                self._change(_UNLOAD, {"lora_name": adapter.name}, present=False)
            except ServerRefused:
                continue  # the others may be unloaded nevertheless
            except ServerLost:
                break  # the server is gone, and its adapters with it

    def _change(self, path: str, body: Mapping[str, str], *, present: bool) -> None:
        """Add or remove one name in the server's list of adapters.

        If the connection ends before the answer, the link sends the request again. If the first
        request had succeeded, the server refuses the second request. This method therefore checks
        in the server's list of models whether the change was made.

        Errors: ServerRefused if the list of models does not show the requested change.
        """
        try:
            self.link.call("POST", path, body)
        except ServerRefused:
            if (body["lora_name"] in self._listed()) != present:
                raise

    def _listed(self) -> set[str]:
        """Names of the models and adapters that the server lists."""
        answer = self.link.call("GET", "/v1/models", timeout=30)
        try:
            return {model.id for model in read_as(ListedModels, answer).data}
        except BadAnswer as error:
            self.link.lost(str(error))


def server_command(
    base: Base,
    roles: Mapping[str, AgentSpec],
    settings: ServerSettings,
    model: Path,
    port: str,
) -> list[str]:
    """Build the command that serves the folder `model` to these roles."""
    options = {**_OPTIONS, "port": port}
    options |= engine_options(base, roles, settings, model, beside=settings.gpus is None)
    python = settings.python or sys.executable
    return [python, "-m", "vllm.entrypoints.openai.api_server", *command_line(options)]


def server_environment(
    base: Base, roles: Mapping[str, AgentSpec], settings: ServerSettings
) -> dict[str, str]:
    """Return the server's additional environment variables; the server also inherits this process's
    environment."""
    on_cpu = base.device.type == "cpu"
    environment = _ENVIRONMENT | runner_variables(roles, on_cpu=on_cpu)
    environment |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if on_cpu else {}
    if settings.gpus is not None:
        environment["CUDA_VISIBLE_DEVICES"] = settings.gpus
    return environment
