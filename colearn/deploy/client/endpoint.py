"""Requests to one endpoint, with timeouts, retries and one-line errors."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from colearn.errors import ColearnError, ConfigError, MissingExtra
from colearn.text.json_value import Rejected, unique_keys

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtra("httpx", "serve") from None

from .completion import Completion, FailedAnswer, read_completion
from .http_client import UnreadAnswer, exchange, http_client
from .reported_error import error_in, read_error, retry_after

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Waiting time before the first retry, and maximum waiting time before any retry, in seconds. If
the server specifies a waiting time, the specified time is used instead."""
LONGEST_ANSWER = 4 * 2**20
"""Maximum number of bytes in an answer."""
TOO_LONG = "context_length_exceeded"
"""The `error.code` that a server returns if a conversation leaves no room for an answer in the
model's context."""
_SHOWN = 300
"""Maximum number of characters that an error quotes from a server's message."""

Result = TypeVar("Result")
Body = Callable[[int], Mapping[str, Any] | None]
"""Maps the number of an attempt (0, 1, ...) to the JSON body of the request."""


class RemoteError(ColearnError):
    """Raised when an endpoint fails; the message names the agent, the URL and the cause."""


class AgentLost(RemoteError):
    """Raised for a timeout, a lost connection or a server failure, after all retries."""


class Refused(RemoteError):
    """Raised when the server rejects the request, or when the answer is no action; the client does
    not try again."""

    def __init__(self, message: str, status: int, code: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """The `error.code` of the OpenAI format, such as `session_conflict`."""


class _Passing(Exception):
    """Raised for a failure that another attempt may avoid."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Endpoint:
    """Connection to the `/v1` API of one server. An endpoint must be opened, used and closed in the
    same event loop.

    `timeout` is the maximum duration of an attempt in seconds; `retries` is the maximum number of
    attempts after the first attempt. The key is sent to the server and never printed.

    Errors: ConfigError for an invalid URL, key or limit.
    """

    def __init__(
        self, url: str, *, name: str, api_key: str | None, timeout: float, retries: int
    ) -> None:
        self.name, self.timeout, self.retries = name, timeout, retries
        self._url, self.shown = _base(url, name)
        """`shown`: the URL without user and password."""
        if not timeout > 0:
            raise ConfigError(f"agent '{name}': timeout is {timeout}, must be above 0 seconds")
        if retries < 0:
            raise ConfigError(f"agent '{name}': retries is {retries}, must be 0 or more")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ConfigError(
                f"agent '{name}': the key has characters that a header cannot hold; set another"
            )
        self._key = api_key or None
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Errors: ConfigError for proxies or certificates of the environment that do not work."""
        self._client = http_client(
            self._url,
            token=self._key,
            timeout=httpx.Timeout(self.timeout, connect=min(self.timeout, 10.0)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def request(
        self,
        method: str,
        path: str,
        body: Body = lambda attempt: None,
        *,
        headers: Mapping[str, str] | None = None,
        retried: Callable[[str], None] = lambda reason: None,
    ) -> dict[str, Any]:
        """Returns the JSON object of an answer; `retried` is called with the reason of each retry.

        Errors: Refused for an error that a retry would not avoid, or for an answer without a JSON
        object; AgentLost if all attempts fail.
        """

        async def once(attempt: int) -> dict[str, Any]:
            answer = await self._once(method, path, body(attempt), headers or {}, self.timeout)
            return self._object(answer)

        return await self._attempts(once, retried)

    async def complete(
        self,
        body: Body,
        *,
        headers: Mapping[str, str],
        retried: Callable[[str], None] = lambda reason: None,
    ) -> Completion:
        """Requests a chat completion. Errors: as for `request`; Refused also for an answer that is
        no action."""

        async def once(attempt: int) -> Completion:
            fields, path = body(attempt), "/chat/completions"
            answer = self._object(await self._once("POST", path, fields, headers, self.timeout))
            try:
                return read_completion(answer)
            except FailedAnswer as failure:
                reason = self.clean(str(failure))
                if failure.passing:
                    raise _Passing(reason) from None
                raise Refused(self.line(reason), failure.status, failure.code) from None

        return await self._attempts(once, retried)

    async def _attempts(
        self, once: Callable[[int], Awaitable[Result]], retried: Callable[[str], None]
    ) -> Result:
        for attempt in range(self.retries + 1):
            try:
                return await once(attempt)
            except _Passing as failure:
                reason, wait = str(failure), failure.wait
            if wait is not None and wait > self.timeout:
                raise AgentLost(
                    self.line(
                        f"{reason}; the server asks to wait {wait:.0f} s, longer than the timeout"
                    )
                )
            if attempt < self.retries:
                retried(reason)
                if wait is None:
                    wait = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * random.uniform(0.75, 1.25)
                await asyncio.sleep(wait)
        raise AgentLost(self.line(f"{reason} ({self.retries + 1} attempts)"))

    async def notify(self, method: str, path: str) -> None:
        """Sends a request once, with a short timeout and without retries; for requests whose
        failure is acceptable. Errors: RemoteError."""
        try:
            await self._once(method, path, None, {}, min(self.timeout, 2.0))
        except _Passing as failure:
            raise AgentLost(self.line(str(failure))) from None

    def _object(self, answer: dict[str, Any] | None) -> dict[str, Any]:
        if answer is None:
            raise Refused(self.line("status 204, an answer without content"), 204, None)
        return answer

    def line(self, text: str) -> str:
        return f"agent '{self.name}' at {self.shown}: {text}"

    async def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        limit: float,
    ) -> Any:
        assert self._client is not None, "open the agent first"
        try:
            async with asyncio.timeout(limit):  # httpx's own limits start anew at each byte
                response, raw = await exchange(
                    self._client,
                    method,
                    self._url + path,
                    body,
                    headers=headers,
                    longest=LONGEST_ANSWER,
                )
        except UnreadAnswer as error:
            raise Refused(self.line(f"the answer {error}"), error.status, None) from None
        except (TimeoutError, httpx.TimeoutException):
            raise _Passing(f"no answer within {limit:g} s") from None
        except httpx.TransportError as error:
            raise _Passing(self.clean(str(error)) or type(error).__name__) from None
        return self._read(response, raw)

    def _read(self, response: httpx.Response, raw: bytes) -> Any:
        status = response.status_code
        if status == 204:
            return None
        text = raw.decode(errors="replace")  # JSON is UTF-8, whatever the header says
        try:
            answer = json.loads(text, object_pairs_hook=unique_keys)
        except Rejected as fault:
            if 200 <= status < 300:
                line = self.line(f"status {status}, an answer that {fault}")
                raise Refused(line, status, None) from None
            answer = None
        except (ValueError, RecursionError):
            answer = None
        error = error_in(answer)
        if error is None and 200 <= status < 300:
            if not isinstance(answer, dict):
                line = f"status {status} without a JSON object: {self.clean(text)}"
                raise Refused(self.line(line.removesuffix(": ")), status, None)
            return answer
        reported = read_error(error or text, status)
        reason = self.clean(reported.message) or response.reason_phrase
        success = " with an error" if 200 <= status < 300 else ""
        line = f"status {status}{success}: {reason}"
        if reported.passing:
            raise _Passing(line, retry_after(response.headers.get("retry-after")))
        raise Refused(self.line(line), reported.status, reported.code)

    def clean(self, text: str) -> str:
        """Returns a server's message as one line without control characters or the key."""
        if self._key is not None:
            text = text.replace(self._key, "***")
        text = text[: 100 * _SHOWN]
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= _SHOWN else line[:_SHOWN] + " ..."


def _base(url: str, name: str) -> tuple[str, str]:
    """Returns the URL of the `/v1` API twice: with and without user and password."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        known = False
    if not known or parts.query or parts.fragment:
        raise ConfigError(
            f"agent '{name}': the URL must look like http://host:8000 or https://host/v1"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/v1"):
        path += "/v1"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{parts.netloc}{path}", f"{parts.scheme}://{host}{path}"
