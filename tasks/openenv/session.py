"""Sessions with an OpenEnv server through OpenEnv's own client."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, build_opener

from colearn.errors import TaskError, required
from colearn.text.real_number import real_number

PATIENCE = 10.0
"""Seconds to wait for a free session, or for the schema."""
_REMEDY = "let the environment pay finite numbers"
_FULL, _FACTORY = "CAPACITY_REACHED", "FACTORY_ERROR"


@dataclass(frozen=True, slots=True)
class ServerObservation:
    """The server's answer to a reset or an action."""

    observation: Mapping[str, Any]
    reward: float | None
    """None: the server sent no number. OpenEnv sends NaN and infinities in the same way."""
    done: bool


class RejectedAction(Exception):
    """Raised when the server did not accept an action or could not execute it. The agent reads the
    reason."""


class Closed(Exception):
    """Raised when the server ended the session or has no free session."""


class EnvironmentSession:
    """One session: a WebSocket with a separate environment on the server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = _client_class()(base_url=url).sync()

    def reset(self, arguments: Mapping[str, Any]) -> ServerObservation:
        """Opens an episode.

        Errors: Closed if the server ended the session or has no free session; TaskError naming the
        server and the remedy.
        """
        try:
            return self._shown(self._client.reset, **arguments)
        except RejectedAction as error:
            if _FULL in str(error):
                raise Closed from None
            raise TaskError(f"task.url: {self.url} refused a reset: {error}") from None

    def step(self, action: Mapping[str, Any]) -> ServerObservation:
        """The environment's answer to an action. Errors: RejectedAction if the server refuses it;
        otherwise as `reset`."""
        try:
            return self._shown(self._client.step, dict(action))
        except Closed:
            raise self._lost("it ended the session") from None

    def close(self) -> None:
        """Ends the session on the server."""
        self._client.close()

    def _shown(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> ServerObservation:
        try:
            result = call(*arguments, **named)
        except RuntimeError as error:  # how the client reports an error that the server sent
            if _FACTORY in str(error):
                raise TaskError(f"task.url: {self.url} made no environment: {error}") from None
            raise RejectedAction(str(error)) from None
        except _exceptions().ConnectionClosed:  # a full server closes, too
            raise Closed from None
        except OSError as error:  # a timeout is one
            raise self._lost(str(error) or type(error).__name__) from None
        reward = None if result.reward is None else self._number(result.reward)
        return ServerObservation(result.observation, reward, bool(result.done))

    def _number(self, reward: Any) -> float:
        try:
            number = real_number(reward)
        except TypeError as error:
            raise TaskError(f"task.url: {self.url} paid {error}; {_REMEDY}") from None
        if not math.isfinite(number):
            raise TaskError(f"task.url: {self.url} paid {number}; {_REMEDY}")
        return number

    def _lost(self, reason: str) -> TaskError:
        return TaskError(f"task.url: {self.url} does not answer ({reason}); start its server")


def read_schema(url: str) -> Mapping[str, Any]:
    """The JSON schema of the server's actions. Errors: TaskError naming the server and the
    remedy."""
    direct = build_opener(ProxyHandler({}))  # no proxy for a server that is named in the config
    try:
        with direct.open(f"{url}/schema", timeout=PATIENCE) as answer:
            return dict(json.loads(answer.read())["action"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise TaskError(
            f"task.url: {url}/schema names no actions ({error}); start an OpenEnv server there"
        ) from None


def check_package() -> None:
    """Errors: MissingExtra without OpenEnv."""
    _client_class()


def _client_class() -> Any:
    module = required("openenv.core.generic_client", "openenv")
    return module.GenericEnvClient


def _exceptions() -> Any:
    return required("websockets.exceptions", "openenv")
