"""Exported agents for the tests of the server, and the server, in a process of its own or in a
thread."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from tiny import byte_tokenizer, tiny_model

from colearn.config import SamplingSettings
from colearn.deploy.export import AgentManifest
from colearn.runs.record.checksums import write_checksums


def export_tiny(
    folder: Path,
    *,
    kind: str = "qwen3",
    window: int | None = None,
    system: str | None = "be brief",
    chat: str = "auto",
    end_scale: float = 4.0,
    **sampling: Any,
) -> Path:
    """A folder as `colearn export` leaves it, of a tiny random model."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny_model(kind, end_scale=end_scale).save_pretrained(folder)
    byte_tokenizer(template=None).save_pretrained(folder) if chat == "plain" else (
        byte_tokenizer().save_pretrained(folder)
    )
    manifest = AgentManifest(
        agent="ada",
        task="notes",
        algorithm="magrpo",
        system=system,
        chat=chat,
        window=window,
        sampling=SamplingSettings(**{"max_tokens": 12, **sampling}),
        weights="merged",
    )
    manifest.write(folder)
    write_checksums(folder)
    return folder


@dataclass(kw_only=True)
class Serving:
    """A server that runs."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return httpx.get(self.url + path, headers=self.headers, timeout=600, **arguments)

    def metric(self, name: str) -> float:
        for line in self.get("/metrics").text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        raise KeyError(name)


@dataclass(kw_only=True)
class Running(Serving):
    """A server process; `log` is what it has written to stderr, at its end."""

    process: subprocess.Popen[str]
    errors: Path

    @property
    def log(self) -> str:
        return self.errors.read_text()

    def until_logged(self, text: str, seconds: float = 600.0) -> None:
        """Waits until `log` holds the text: a request's line is written after its answer."""
        end = time.monotonic() + seconds
        while text not in self.log:
            assert time.monotonic() < end, self.log
            time.sleep(0.05)


@dataclass(kw_only=True)
class Threaded(Serving):
    """A server in a thread. `asked_to_end` is what a SIGTERM calls; `thread` ends after it."""

    asked_to_end: Callable[[], None]
    thread: threading.Thread


@contextmanager
def serving(
    folder: Path, *options: str, token: str | None = None, code: Sequence[str] = ("-m", "colearn")
) -> Iterator[Running]:
    """A process that serves `folder` on a free port, ended at the end."""
    errors = folder.parent / f"{folder.name}.{len(list(folder.parent.iterdir()))}.log"
    environment = {k: v for k, v in os.environ.items() if k != "COLEARN_TOKEN"}
    environment |= {"OMP_NUM_THREADS": "1"} | ({"COLEARN_TOKEN": token} if token else {})
    with errors.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *code, "serve", str(folder), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http://" in line, (line, errors.read_text())
        url = line.split(" at ")[1].strip().removesuffix("/v1")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        yield Running(process=process, url=url, errors=errors, headers=headers)
    finally:
        process.terminate()
        ended = process.wait(600)
    assert ended == 0, errors.read_text()


@contextmanager
def serving_here(folder: Path, *, token: str | None = None, **limits: Any) -> Iterator[Threaded]:
    """The server of `folder` in a thread, on a free port, ended at the end: all of `colearn serve`
    but its command, its log and its process."""
    from colearn.deploy.client.protocol.limits import ServerLimits
    from colearn.deploy.client.protocol.listening import listen
    from colearn.deploy.serve import server as module
    from colearn.deploy.serve.agent import ServedAgent

    made: Queue[module._DrainingServer] = Queue()

    class Noted(module._DrainingServer):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            made.put(self)

    agent = ServedAgent(folder, device="cpu")
    listening = listen("127.0.0.1", 0, field="port")
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    work = module._serve(agent, listening, "127.0.0.1", token, ServerLimits(**limits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_DrainingServer", Noted)
        thread = threading.Thread(target=lambda: asyncio.run(work))
        thread.start()
        server = made.get(timeout=600)

    def asked_to_end() -> None:
        server.handle_exit(signal.SIGTERM, None)

    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        yield Threaded(url=url, headers=headers, asked_to_end=asked_to_end, thread=thread)
    finally:
        if thread.is_alive():
            asked_to_end()
        thread.join()
