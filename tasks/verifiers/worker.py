"""Describes an environment of verifiers, or plays its episodes for the task `verifiers`.

    python worker.py SPEC        # plays for COLEARN_GATEWAY; without this variable, describes

The Python that runs this file needs verifiers, and no colearn.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import cache
from itertools import islice
from typing import Any

import httpx
from verifiers.v1.clients import Client, EvalClient, ModelContext
from verifiers.v1.configs.agent import AgentConfig, agent_config_fields
from verifiers.v1.configs.client import BaseClientConfig, EvalClientConfig
from verifiers.v1.configs.env import default_agent_harness
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.env import Env
from verifiers.v1.episode import Episode
from verifiers.v1.harness import Harness
from verifiers.v1.harnesses.utils.compaction import bound_tool_message
from verifiers.v1.harnesses.utils.mcp import MCPConnection, call_mcp, connect_mcp
from verifiers.v1.interception.server import InterceptionServer
from verifiers.v1.runtimes import PrimeConfig, ProgramResult, SubprocessConfig
from verifiers.v1.task import Task
from verifiers.v1.types import SystemMessage, UserMessage
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

__all__ = ["ChatHarness"]

CHAT = "colearn_chat"
"""The name under which verifiers finds the harness of this file."""
sys.modules[CHAT] = sys.modules[__name__]
MOST = 64
"""Most episodes that one request to the gateway returns."""
NOBODY = ModelContext("none", EvalClientConfig(base_url="http://unused", api_key_var=""))
"""The model of roles that have no address: there are none in an episode."""


class ChatHarness(Harness[HarnessConfig]):
    """The loop of verifiers' harness `null`, in this process: the agent answers the conversation
    and calls the task's tools until it answers without a call."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(  # type: ignore[no-untyped-def]
        self, ctx, trace, runtime, endpoint, secret, mcp_urls, data
    ) -> ProgramResult:
        """Plays one segment of the conversation."""
        system, prompt = self.resolve_prompt(data)
        history = [UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or ())
        if system:
            history.insert(0, SystemMessage(content=system))
        messages = [message_to_wire(message) for message in history]
        servers = {
            name: {"url": url, "timeout": self.config.tool_timeout}
            for name, url in mcp_urls.items()
        }
        async with AsyncExitStack() as stack:
            tools, dispatch, connections = await connect_mcp({"mcpServers": servers}, stack)
            body = {"model": ctx.model, "messages": messages, **({"tools": tools} if tools else {})}
            headers = {"Authorization": f"Bearer {secret}"}
            while True:
                answer = await connection().post(
                    f"{endpoint}/chat/completions", json=body, headers=headers
                )
                if answer.status_code >= 400:
                    if "context_length_exceeded" in answer.text:
                        break
                    failure = f"{answer.status_code}: {answer.text[:300]}"
                    return ProgramResult(exit_code=1, stdout="", stderr=failure)
                message = answer.json()["choices"][0]["message"]
                messages.append({k: v for k, v in message.items() if v is not None})
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    messages.append(await tool_result(call, connections, dispatch))
        return ProgramResult(exit_code=0, stdout="", stderr="")


async def tool_result(
    call: Mapping[str, Any],
    connections: dict[str, MCPConnection],
    dispatch: dict[str, tuple[str, str]],
) -> dict[str, Any]:
    """Calls a tool of the task; returns the message with its result, or with the reason why the
    call is not valid."""
    name = call["function"]["name"]
    try:
        arguments = json.loads(call["function"]["arguments"] or "{}")
    except json.JSONDecodeError as error:
        content: Any = f"error: invalid JSON in tool arguments ({error})"
    else:
        if not isinstance(arguments, dict):
            content = "error: tool arguments must be a JSON object"
        elif name not in dispatch:
            content = f"error: unknown tool {name!r}"
        else:
            content = await call_mcp(connections, dispatch, name, arguments)
    return bound_tool_message(
        {"role": "tool", "tool_call_id": call["id"], "content": content, "name": name}
    )


class EpisodeConfig(EvalClientConfig):
    """The address of one agent in one episode."""


class EpisodeClient(EvalClient):
    """A client at an `EpisodeConfig`. All of them share one HTTP client: making one takes longer
    than a request of a small model."""

    def __init__(self, config: EpisodeConfig) -> None:
        self.base_url, self.api_key = config.base_url, "unused"
        self.headers: dict[str, str] = {}
        self.client = connection()


@cache
def connection() -> httpx.AsyncClient:
    """The HTTP client of this process. It keeps no connection: while other episodes keep this
    process busy, either end may close an idle one that a request has just taken."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(timeout=None, limits=limits, trust_env=False)


_client_of_a_model = InterceptionServer._client


def _client(server: InterceptionServer, config: BaseClientConfig) -> Client:
    if isinstance(config, EpisodeConfig):
        return EpisodeClient(config)
    return _client_of_a_model(server, config)


# verifiers keeps a client for each address until it ends, and each episode has addresses of its own
InterceptionServer._client = _client


def open_env(spec: Mapping[str, Any]) -> Env[Any]:
    """Loads an environment.

    A role plays in this process, by `ChatHarness` in a local folder, if neither the environment
    nor the settings name another harness and another runtime.
    """
    settings = dict(spec["settings"])
    settings["taskset"] = {**settings.get("taskset", {}), "id": spec["env"]}
    config = resolve_env_config(settings)
    default = default_agent_harness(config.taskset.id)
    return load_environment(
        config.model_copy(
            update={
                name: _local(role, default, settings.get(name, {}))
                for name, role in agent_config_fields(config).items()
            }
        )
    )


def _local(role: AgentConfig, default: HarnessConfig, settings: Mapping[str, Any]) -> AgentConfig:
    update: dict[str, Any] = {}
    harness = role.harness if role.harness is not None else default
    if harness.id == "null" or (role.harness is None and harness.id == "bash"):
        update["harness"] = HarnessConfig(
            id=CHAT, tool_timeout=harness.tool_timeout, disabled_tools=harness.disabled_tools
        )
    if role.runtime == PrimeConfig() and "runtime" not in settings:
        update["runtime"] = SubprocessConfig()
    return role.model_copy(update=update)


def roles(env: Env[Any]) -> dict[str, AgentConfig]:
    """The roles that are trained: those for which neither the environment nor the settings name a
    model."""
    return {name: role for name, role in agent_config_fields(env.config).items() if not role.model}


def describe(env: Env[Any], rows: int) -> dict[str, Any]:
    """The trained roles, and a key of each of the first `rows` tasks."""
    return {"agents": list(roles(env)), "keys": [task.key for task in islice(env.taskset, rows)]}


async def play(env: Env[Any], task: Task, endpoints: Mapping[str, str]) -> dict[str, float]:
    """Plays one episode; returns the reward of each trained role, summed over its traces.

    Errors: RuntimeError for an episode that the environment does not count as complete, and for a
    reward that is not finite.
    """
    own = copy.copy(env)
    own.config = env.config.model_copy(
        update={
            name: role.model_copy(
                update={
                    "model": name,
                    "client": EpisodeConfig(base_url=endpoints[name], api_key_var=""),
                }
            )
            for name, role in roles(env).items()
        }
    )
    episode = await own.run_episode(task, NOBODY)
    if not env.complete(episode):
        raise RuntimeError(_fault(episode))
    rewards = dict.fromkeys(roles(env), 0.0)
    for trace in episode.traces:
        if trace.agent.name in rewards:
            rewards[trace.agent.name] += trace.reward
    for name, paid in rewards.items():
        if not math.isfinite(paid):
            raise RuntimeError(f"the environment pays {name} {paid}")
    return rewards


def _fault(episode: Episode) -> str:
    errors = [*(e for trace in episode.traces for e in trace.errors), *episode.errors]
    if not errors:
        return "the environment does not count this episode as complete"
    return f"{errors[0].type}: {errors[0].message}"


async def work(env: Env[Any], rows: int, together: bool, gateway: str) -> None:
    """Plays every episode that the gateway offers, all of them concurrently, until the run ends."""
    tasks = list(islice(env.taskset, rows))
    playing = set[asyncio.Task[None]]()

    async def play_one(episode: Mapping[str, Any]) -> None:
        try:
            paid = await play(env, tasks[episode["item"]], episode["endpoints"])
            end: dict[str, Any] = {"result": sum(paid.values()) if together else paid}
        except Exception as error:  # noqa: BLE001 - the episode fails, the worker does not
            end = {"failure": str(error)}
        await connection().post(episode["end"], json=end)

    async with env.serving():
        while True:
            offered = await connection().post(gateway, json={"most": MOST})
            if offered.status_code >= 400:
                raise RuntimeError(f"the gateway answered {offered.status_code}: {offered.text}")
            # without content there was no episode for 20 seconds
            for episode in offered.json()["episodes"] if offered.content else ():
                task = asyncio.create_task(play_one(episode))
                playing.add(task)
                task.add_done_callback(playing.discard)


def main(spec: Mapping[str, Any]) -> None:
    """Plays for the gateway, or prints the environment's description as the last line."""
    here = os.getcwd()  # an environment may be a module in this folder, and serve its tools, too
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    env = open_env(spec)
    if "COLEARN_GATEWAY" in os.environ:
        together = spec["rewards"] == "team"
        asyncio.run(work(env, spec["rows"], together, os.environ["COLEARN_GATEWAY"]))
    else:
        print(f"\n{json.dumps(describe(env, spec['rows']))}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
