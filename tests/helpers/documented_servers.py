"""The servers that the commands of a page start: each in a thread, on a free port in place of the
port that the page names."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import typer

from colearn.deploy.serve import server as module
from colearn.entry.cli import app


class Servers:
    """The servers of one page."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        """The address of each server, by the one that the page names."""
        self._threads: list[threading.Thread] = []

    def start(self, words: Sequence[str]) -> None:
        """Runs a command `serve FOLDER --port PORT` until the page ends."""
        port = words[words.index("--port") + 1]
        announced = threading.Event()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "announced", self._told(f"127.0.0.1:{port}", announced))
            command: Any = typer.main.get_command(app)
            arguments = ["0" if word == port else word for word in words]
            self._threads.append(
                threading.Thread(
                    target=command.main, args=(arguments,), kwargs={"standalone_mode": False}
                )
            )
            self._threads[-1].start()
            assert announced.wait(600), words

    def _told(self, named: str, announced: threading.Event) -> Any:
        def told(name: str, url: str) -> str:
            self._addresses[named] = url.removeprefix("http://").removesuffix("/v1")
            announced.set()
            return f"agent {name} at {url}"

        return told

    def addressed(self, words: Sequence[str]) -> list[str] | None:
        """The words of a command with the addresses of running servers; None if one of its servers
        does not run."""
        named = set(re.findall(r"https?://([^/\s\"']+)", " ".join(words)))
        if named - self._addresses.keys():
            return None
        for name in named:
            words = [word.replace(name, self._addresses[name]) for word in words]
        return list(words)

    def close(self, running: Sequence[Any]) -> None:
        for server in running:
            server.handle_exit(signal.SIGTERM, None)
        for thread in self._threads:
            thread.join(600)
            assert not thread.is_alive()


@contextmanager
def servers() -> Iterator[Servers]:
    """Servers that end with the block."""
    running: list[Any] = []
    first = module._DrainingServer.__init__

    def noted(self: Any, config: Any) -> None:
        first(self, config)
        running.append(self)

    started = Servers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module._DrainingServer, "__init__", noted)
        try:
            yield started
        finally:
            started.close(running)
