"""vLLM servers that stay up over several runs of a benchmark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import torch

from colearn.agents import AgentSpec, ChatFormat
from colearn.errors import ServerLost
from colearn.generate.server_link import ServerLink, ServerRefused
from colearn.generate.server_process import ServerProcess, ServerStart, free_port
from colearn.generate.vllm_server_command import server_command, server_environment
from colearn.models.load import load_base, load_tokenizer

MINUTES = 120.0
"""In which a server must answer: on a busy machine a start takes long."""


@contextmanager
def served(model: Path, agents: Sequence[str], python: str | None) -> Iterator[dict[str, str]]:
    """The URL of a server of this model for each agent, with `python` as its interpreter (None:
    this one). A run replaces the weights, so later runs may use the same servers. After an error
    their logs stay, and a note of the error names their folder."""
    start = ServerStart(
        python=python,
        gpus=None,
        cache_gib=0.2,
        max_length=None,
        max_rows=256,
        arguments=(),
        minutes=MINUTES,
    )
    chat = ChatFormat(load_tokenizer(str(model), field="model"), chat="plain")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(_logs()))
        base = load_base(
            str(model),
            compute="float32",
            trained=False,
            device=torch.device("cpu"),
            field="model",
        )
        urls, processes = {}, {}
        for agent in agents:
            port = free_port()
            roles = {agent: AgentSpec(chat=chat)}
            command = server_command(base, roles, start, model, str(port))
            processes[agent] = ServerProcess(
                command,
                environment=server_environment(base, roles, start),
                log=folder / f"{agent}.log",
            )
            stack.callback(processes[agent].close)
            urls[agent] = f"http://127.0.0.1:{port}"
        for agent, url in urls.items():
            _wait(url, processes[agent])
        yield urls


@contextmanager
def _logs() -> Iterator[str]:
    folder = mkdtemp(prefix="colearn-servers-")
    try:
        yield folder
    except BaseException as error:
        error.add_note(f"The servers' logs: {folder}")
        raise
    shutil.rmtree(folder)


def _wait(url: str, process: ServerProcess) -> None:
    """Errors: ColearnError with the server's reason if it ends."""
    link = ServerLink(url, timeout=10)
    deadline = time.monotonic() + 60 * MINUTES
    try:
        while True:
            try:
                link.call("GET", "/health")
                return
            except (ServerLost, ServerRefused):
                if not process.running:
                    raise process.failed() from None
                if time.monotonic() > deadline:
                    link.lost(f"did not start within {MINUTES:g} minutes")
            time.sleep(0.5)
    finally:
        link.close()
