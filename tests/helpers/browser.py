"""Headless Chromium over its DevTools pipe: pages, their console, pictures of them."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name)) is not None
    ),
    None,
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium, chromium-browser or google-chrome on the PATH"
)


class Navigating(Exception):
    """The page that was asked has given way to the next one."""


class Page:
    """One open page. `complaints`: what its console holds of warnings, errors and exceptions."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._next(20.0)
            if message.get("id") == self._number:
                error = message.get("error", {}).get("message", "")
                if "navigated or closed" in error:
                    raise Navigating(error)
                assert "error" not in message, message["error"]
                return message["result"]

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Begin to load a page; wait for what it shows."""
        self.command("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression, or the promise that it gives, is worth."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 600.0) -> None:
        """Until the page has loaded and an expression is true of it."""
        end = time.monotonic() + seconds
        loaded = "document.readyState === 'complete' && location.protocol === 'http:'"
        while not self._holds(f"{loaded} && ({expression})"):
            assert time.monotonic() < end, f"never true: {expression}\n{self.text()}"
            time.sleep(0.05)

    def _holds(self, expression: str) -> bool:
        try:
            return bool(self.value(expression))
        except Navigating:
            return False

    def text(self) -> str:
        return str(self.value("document.body.innerText"))

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self._read], [], [], left)[0]
            assert ready, "the browser does not answer"
            part = os.read(self._read, 2**20)
            assert part, "the browser is gone"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._listen(message)
        return message

    def _listen(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(str([part.get("value") for part in told["args"]]))
            case "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"]))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                entry = told["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A page in a browser of its own, with an empty profile."""
    assert CHROMIUM is not None
    to_browser, ours_out = _pipe()
    ours_in, from_browser = _pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        # the browser reads commands from descriptor 3 and writes to descriptor 4
        inner = 'exec "$@" 3<&"$COMMANDS" 4>&"$ANSWERS"'
        process = subprocess.Popen(
            ["bash", "-c", inner, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "COMMANDS": str(to_browser), "ANSWERS": str(from_browser)},
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(ours_out, ours_in)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            process.terminate()
            process.wait(600)


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are out of the way of 3 and 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
