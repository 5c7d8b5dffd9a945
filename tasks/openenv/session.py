"""Sessions with an OpenEnv server through OpenEnv's own client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, build_opener

from colearn.errors import TaskError, required

PATIENCE = 10.0
"""Seconds to wait for a free session."""
_FULL, _FACTORY = "CAPACITY_REACHED", "FACTORY_ERROR"
_RETRY = 0.05


@dataclass(frozen=True, slots=True)
class Shown:
    """What the server answers to a reset or an action."""

    observation: Mapping[str, Any]
    reward: float
    done: bool


class Refused(Exception):
    """The server did not accept or could not carry out an action; the agent is told."""


class Session:
    """One session: a WebSocket with an environment of its own on the server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = _client_class()(base_url=url).sync()

    def reset(self, arguments: Mapping[str, Any], free: Callable[[], bool]) -> Shown:
        """Opens an episode. While the server has no free session, calls `free` and tries again.

        `free` closes a session of ours that can be spared, and returns whether there was one.

        Errors: TaskError naming the server and the remedy.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._shown(self._client.reset, **arguments)
            except Refused as error:
                if _FULL not in str(error):
                    raise TaskError(f"task.url: {self._url} refused a reset: {error}") from None
            except _closed_in_order():  # a full server closes; its reason may arrive too late
                pass
            if not free() and time.monotonic() > end:
                raise TaskError(
                    f"task.url: {self._url} has no free session; start the server with a "
                    "larger max_concurrent_envs, or lower train.episodes"
                )
            self._client.disconnect()
            time.sleep(_RETRY)

    def step(self, action: Mapping[str, Any]) -> Shown:
        """The environment's answer to an action. Errors: Refused; TaskError as `reset`."""
        try:
            return self._shown(self._client.step, dict(action))
        except _closed_in_order() as error:
            raise self._lost(error) from None

    def close(self) -> None:
        """Ends the session on the server."""
        self._client.close()

    def _shown(self, call: Callable[..., Any], *given: Any, **named: Any) -> Shown:
        try:
            result = call(*given, **named)
        except RuntimeError as error:  # how the client reports an error that the server sent
            if _FACTORY in str(error):
                raise TaskError(f"task.url: {self._url} made no environment: {error}") from None
            raise Refused(str(error)) from None
        except (OSError, _exceptions().ConnectionClosedError) as error:  # a timeout is an OSError
            raise self._lost(error) from None
        reward = 0.0 if result.reward is None else float(result.reward)
        return Shown(result.observation, reward, bool(result.done))

    def _lost(self, error: Exception) -> TaskError:
        reason = str(error) or type(error).__name__
        return TaskError(f"task.url: {self._url} does not answer ({reason}); start its server")


def read_schema(url: str) -> Mapping[str, Any]:
    """The JSON schema of the server's actions. Errors: TaskError as a session's."""
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
    module = required("openenv.core.generic_client", "openenv", package="openenv-core")
    return module.GenericEnvClient


def _closed_in_order() -> Any:
    return _exceptions().ConnectionClosedOK


def _exceptions() -> Any:
    return required("websockets.exceptions", "openenv")
