"""One vLLM server of a run: its process, and the requests and weights that it takes."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from colearn.errors import MissingExtra, ServerLost
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec

from .server_answers import BadAnswer, CacheReset, ListedModels, read_as
from .server_link import ServerLink, ServerRefused
from .server_process import ServerProcess
from .vllm_options import command_line, engine_options, runner_variables
from .vllm_server_checks import GENERATE, Served, check_server
from .vllm_settings import ServerSettings
from .vllm_weights import LoadedAdapter, VLLMCopy

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
_UNLOAD = "/v1/unload_lora_adapter"


class OneServer:
    """A server at `url`. `timeout` is the limit for each request in seconds.

    Every process of a run may send requests; one process starts the server, checks it and writes to
    it. Every method that writes raises ServerLost if the server ends, hangs or refuses.
    """

    def __init__(self, url: str, *, timeout: float) -> None:
        self.link = ServerLink(url, timeout=timeout, token=os.environ.get("VLLM_API_KEY"))
        self.process: ServerProcess | None = None
        self.served = Served("", 0)

    def start(self, engine: VLLMCopy, settings: ServerSettings) -> None:
        """Start the server of an engine, and wait until it answers.

        Errors: MissingExtra without vLLM; ConfigError as for `engine_options`; ColearnError with
        the server's reason if the server ends; ServerLost after `start_minutes`.
        """
        if settings.python is None and importlib.util.find_spec("vllm") is None:
            raise MissingExtra("vllm", "vllm")
        base, roles = engine.base, engine.roles
        port = self.link.url.rpartition(":")[2]
        command = server_command(base, roles, settings, engine.folder / "model", port)
        engine.write_model()
        self.process = ServerProcess(
            command,
            environment=server_environment(base, roles, settings),
            log=engine.folder / "server.log",
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

    def check(self, base: Base, roles: Mapping[str, AgentSpec]) -> None:
        """Check model, tokenizer and options. Errors: as for `check_server`."""
        self.served = check_server(self.link, base, roles)

    def begin_requests(self, bodies: Sequence[Mapping[str, Any]]) -> Future[list[Any]]:
        """Send requests for tokens; cancelling the future cancels the requests."""
        return self.link.begin(GENERATE, bodies)

    def end_requests(self, begun: Future[list[Any]]) -> list[Any]:
        """Wait for the answers, in order."""
        try:
            return self.link.wait(begun)
        except ServerRefused as error:
            if error.status == 404:
                self.link.lost(f"has lost this run's weights ({error}): it was restarted")
            self.link.lost(f"cannot generate ({error})")

    def load_full(self, folder: Path) -> None:
        """Load the full weights in `folder`, and clear the prefix cache."""
        refusal = "does not take the trained model's weights"
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        self._tell("/collective_rpc", body, refusal)
        # a server that has loaded nothing yet may still answer from blocks of old weights
        answer = self._tell("/reset_prefix_cache", None, refusal)
        try:
            reset = read_as(CacheReset, answer)
        except BadAnswer as error:
            self.link.lost(str(error))
        if not reset.success:
            self.link.lost("kept cache blocks of the old weights: other requests are running")

    def mark(self, version: str) -> None:
        """Set the version name of the server's weights."""
        body = {"new_version": version}
        self._tell("/update_weight_version", body, "does not take a version of its weights")

    def command(self, path: str) -> None:
        self._tell(path, None, f"does not answer {path}")

    def load_adapter(self, adapter: LoadedAdapter) -> None:
        body = {"lora_name": adapter.name, "lora_path": adapter.folder}
        self._tell("/v1/load_lora_adapter", body, f"does not take adapter '{adapter.adapter}'")

    def unload_adapter(self, adapter: LoadedAdapter) -> None:
        self._tell(_UNLOAD, {"lora_name": adapter.name}, f"does not unload '{adapter.adapter}'")

    def unload_adapters_of(self, run: str) -> None:
        """Unload the adapters of a run as far as possible; called before the connection is
        closed."""
        try:
            for name in sorted(self._listed()):
                if name.startswith(f"{run}-"):
                    with suppress(ServerRefused):  # the others may be unloaded nevertheless
                        self.link.call("POST", _UNLOAD, {"lora_name": name})
        except ServerLost:
            pass  # the server is gone, and its adapters with it

    def close(self) -> None:
        """Close the connections, and stop the server if this process started it."""
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

    def _tell(self, path: str, body: Any, refusal: str) -> Any:
        """Send a command; `refusal` says what it means that the server refuses it."""
        try:
            return self.link.call("POST", path, body)
        except ServerRefused as error:
            self.link.lost(f"{refusal} ({error})")

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
