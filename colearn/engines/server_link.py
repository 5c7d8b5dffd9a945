"""HTTP link to a generation server, with concurrent requests, health checks and one-line errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar

from colearn.deploy.client.http_client import UnreadAnswer, exchange, http_client
from colearn.errors import ColearnError, MissingExtra, ServerLost, printable
from colearn.text.masking import masked

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtra("httpx", "serve") from None

from .server_answers import LONGEST_ANSWER, decode_json

PARALLEL = 256
"""Maximum number of concurrent requests. A higher number would not help, because a server queues
its requests."""
PULSE = 8.0
"""Seconds between health checks while requests run, and the timeout in seconds of each check."""
_MISSED = 2
"""Number of consecutive unanswered health checks after which the server counts as lost."""
_SHOWN = 300

Result = TypeVar("Result")


class ServerRefused(ColearnError):
    """Raised when a generation server has answered a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status, self.message = status, message


class ServerLink:
    """Connections to one server, managed by an event loop in a separate thread.

    `timeout` is the limit for each request in seconds; `token` is sent as a bearer token and never
    shown; `field` is the setting that names the server, for errors. Each request has a new
    connection: a server closes idle ones, and may close one on which a request is already waiting.

    Errors: ConfigError for proxies or certificates of the environment that cannot be used.
    """

    def __init__(
        self, url: str, *, timeout: float, token: str | None = None, field: str = "run.generator"
    ) -> None:
        url = url.rstrip("/")
        self._field = field
        self.url, self.timeout = masked(url), timeout
        """`url`: without user and password."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = http_client(url, base_url=url, token=token, timeout=None, limits=limits)
        self._gate = asyncio.Semaphore(PARALLEL)
        self._healthy_at = 0.0
        """Time of the last answered health check, in seconds of the loop's clock."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None
    ) -> Any:
        """Send one request and return the decoded answer; None if the answer is not JSON. The
        answer is not validated here: `server_answers` has the schemas.

        Errors: ServerLost if there is no answer, or if the answer is compressed or longer than
        `LONGEST_ANSWER`; ServerRefused for an error status.
        """
        return self._run(self._call(method, path, body, timeout or self.timeout))

    def begin(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> Future[list[Any]]:
        """Send concurrent POST requests. The future's result is the list of answers in order. The
        first failure cancels the other requests. Cancelling the future closes the connections.

        Errors, as the future's exception: as for `call`; ServerLost also if health checks remain
        unanswered while requests run.
        """
        return asyncio.run_coroutine_threadsafe(self._all(path, bodies), self._loop)

    @staticmethod
    def wait(begun: Future[Result]) -> Result:
        """Wait for the result of requests; an interruption cancels the requests."""
        try:
            return begun.result()
        except BaseException:
            begun.cancel()  # an interruption closes the connections, which cancels the requests
            raise

    def lost(self, reason: str) -> NoReturn:
        """Raise ServerLost with a message that names the remedy."""
        raise ServerLost(
            f"{self._field}: the server at {self.url} {reason}; nothing since the last update is "
            "trained on: check the server, then resume the run with --resume"
        )

    def close(self) -> None:
        """Close all connections; the link cannot be used afterwards."""
        if self._thread.is_alive():
            self._run(self._client.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.wait(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _all(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        async def send(body: Mapping[str, Any]) -> Any:
            async with self._gate:
                return await self._call("POST", path, body, self.timeout)

        tasks = [asyncio.create_task(send(body)) for body in bodies]
        watch = asyncio.create_task(self._watch())
        answers: asyncio.Future[list[Any]] = asyncio.gather(*tasks)
        futures: set[asyncio.Future[Any]] = {answers, watch}
        try:
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                watch.result()
            return await answers
        finally:
            for task in (*tasks, watch):
                task.cancel()
            await asyncio.gather(*tasks, watch, answers, return_exceptions=True)

    async def _watch(self) -> None:
        missed = 0
        while True:
            await asyncio.sleep(PULSE)
            if self._loop.time() - self._healthy_at < PULSE / 2:
                missed = 0  # other requests have checked it
                continue
            try:
                await self._call("GET", "/health", None, PULSE)
                missed, self._healthy_at = 0, self._loop.time()
            except ServerRefused as error:
                self.lost(f"is not healthy ({error})")
            except ServerLost:
                missed += 1
                if missed == _MISSED:
                    self.lost(f"has not answered {_MISSED} health checks of {PULSE:g} s")

    async def _call(self, method: str, path: str, body: Any, timeout: float) -> Any:
        longest = LONGEST_ANSWER
        try:
            async with asyncio.timeout(timeout):
                answer, raw = await exchange(self._client, method, path, body, longest=longest)
        except TimeoutError:
            self.lost(f"gave no answer within {timeout:g} s")
        except UnreadAnswer as error:
            self.lost(f"gave an answer that {error}")
        except httpx.TransportError as error:
            self.lost(f"is gone ({_line(str(error)) or type(error).__name__})")
        decoded = decode_json(raw)
        if not answer.is_success:
            text = raw[: 100 * _SHOWN].decode(errors="replace")
            raise ServerRefused(answer.status_code, _message(decoded, text))
        return decoded


def _message(decoded: Any, text: str) -> str:
    """Return an answer's error message as one line. The answer may have the format of OpenAI, of
    FastAPI, or any other format."""
    if isinstance(decoded, dict):
        error = decoded.get("error", decoded.get("detail", text))
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    return _line(text)


def _line(text: str) -> str:
    line = printable(text)
    return line if len(line) <= _SHOWN else line[:_SHOWN] + " ..."
