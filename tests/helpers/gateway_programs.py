"""Programs of gateway tests, and a driver that answers for the agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import uvicorn.server

from colearn.programs.gateway.task import Gateway


class _QuickAsyncio:
    """asyncio for uvicorn, which looks for a server's end, and waits at it, by tenths of a second:
    tests that end a server each would spend most of their time in it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)


uvicorn.server.asyncio = _QuickAsyncio()  # type: ignore[attr-defined]
RNG = np.random.default_rng(0)
Scripted = Callable[[str, str], str]
"""(agent, prompt) to what the agent says."""


def items(split: str) -> list[str]:
    return ["owl", "bee"]


OPENED: list[Gateway] = []
"""Closed after each test."""


def opened(task: Gateway) -> Gateway:
    """The task, which is closed after the test."""
    OPENED.append(task)
    return task


def gateway(play: str | None, **settings: Any) -> Gateway:
    """A task whose program is a function of this module."""
    defaults: dict[str, Any] = {"timeout": 20.0, "horizon": 8}
    target = None if play is None else f"tests.helpers.gateway_programs:{play}"
    source = "tests.helpers.gateway_programs:items"
    return opened(Gateway(("one", "two"), source, play=target, **{**defaults, **settings}))


def episode(task: Gateway, said: Scripted, item: Any = "owl") -> list[Any]:
    """The states of one episode."""
    states = [task.reset(item, RNG)]
    while not states[-1].finished:
        asked = {a: task.observe(states[-1], a) for a in task.agents}
        actions = {a: said(a, p.whole) for a, p in asked.items() if p is not None}
        states.append(task.step(states[-1], actions, RNG).state)
    return states


async def ask(url: str, messages: list[Any], **fields: Any) -> dict[str, Any]:
    """The completion, or the error's body."""
    async with httpx.AsyncClient(timeout=600, verify=False) as client:
        body = {"messages": messages, **fields}
        return (await client.post(f"{url}/chat/completions", json=body)).json()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """The assistant's message."""
    return answer["choices"][0]["message"]


async def relay(item: str, endpoints: Any) -> float:
    """One speaks, two hears it; two is asked again in the same conversation."""
    first = said(await ask(endpoints["one"], [user(f"say {item}")]))["content"]
    messages = [{"role": "system", "content": "You repeat."}, user(f"heard {first}")]
    messages.append(said(await ask(endpoints["two"], messages)))
    messages.append(user("again"))
    last = said(await ask(endpoints["two"], messages))["content"]
    return float(last == first)


async def tools(item: str, endpoints: Any) -> None:
    """One calls a function and is shown its result, which is tainted."""
    offered = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    messages: list[Any] = [user("look it up")]
    answer = said(await ask(endpoints["one"], messages, tools=offered))
    call = answer["tool_calls"][0]
    assert call["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
    messages += [answer, {"role": "tool", "tool_call_id": call["id"], "content": "TAINT"}]
    await ask(endpoints["one"], messages, tools=offered)


async def rewrites(item: str, endpoints: Any) -> None:
    """All ways to leave a conversation; the agent always says yes."""
    url = endpoints["one"]
    yes, put = {"role": "assistant", "content": "yes"}, {"role": "assistant", "content": "no"}
    for messages in (
        [user("a"), user("b")],
        [user("a"), user("changed"), yes, user("c")],
        [user("c"), user("a"), user("changed"), yes, yes, user("d")],
        [user("other")],
        [user("other"), yes, user("d"), put, user("e")],
        [user("other"), user("d"), put, user("e"), user("f")],
        [{"role": "system", "content": "x"}, user("g")],
    ):
        assert said(await ask(url, messages))["content"] == "yes"


USAGE: list[dict[str, int]] = []


async def notes_usage(item: str, endpoints: Any) -> None:
    """Two requests of one conversation; what they are said to have cost is kept."""
    messages: list[Any] = [user("a")]
    for _ in range(2):
        answer = await ask(endpoints["one"], messages)
        USAGE.append(answer["usage"])
        messages += [said(answer), user("b")]


LOGPROBS: list[Any] = []


async def notes_logprobs(item: str, endpoints: Any) -> None:
    """Two requests, the second for log-probabilities; what is told of them is kept."""
    for fields in ({}, {"logprobs": True}):
        answer = await ask(endpoints["one"], [user("a")], **fields)
        LOGPROBS.append(answer["choices"][0]["logprobs"])


async def warms_up(item: str, endpoints: Any) -> float:
    """Sets a temperature; 1.0 if it is answered."""
    return float("choices" in await ask(endpoints["one"], [user("a")], temperature=0.5))


async def sets_top_p(item: str, endpoints: Any) -> float:
    """1.0 if it is answered."""
    return float("choices" in await ask(endpoints["one"], [user("a")], top_p=0.5))


def plainly(item: str, endpoints: Any) -> float:
    """Without async."""
    body = {"messages": [user("a")]}
    answer = httpx.post(
        f"{endpoints['one']}/chat/completions", json=body, timeout=600, verify=False
    )
    return float("choices" in answer.json())


def plainly_returns_a_coroutine(item: str, endpoints: Any) -> Any:
    return warms_up(item, endpoints)


def starts_a_loop(item: str, endpoints: Any) -> float:
    """As a framework's blocking call does."""
    return asyncio.run(warms_up(item, endpoints))


class Called:
    async def __call__(self, item: str, endpoints: Any) -> float:
        return await warms_up(item, endpoints)


called = Called()
LATE = 0.5


async def takes_one(item: str) -> float:
    return 1.0


async def takes_three(item: str, endpoints: Any, more: Any) -> float:
    return 1.0


def yields(item: str, endpoints: Any) -> Any:
    yield 1.0


async def yields_async(item: str, endpoints: Any) -> Any:
    yield 1.0


REFUSED: list[dict[str, Any]] = []


async def talks(item: str, endpoints: Any) -> None:
    """Goes on in one conversation until it is refused; the error is kept."""
    messages: list[Any] = [user("a")]
    while "choices" in (answer := await ask(endpoints["one"], messages)):
        messages += [said(answer), user("go on")]
    REFUSED.append(answer["error"])


async def both(item: str, endpoints: Any) -> None:
    """Two requests at once."""
    await asyncio.gather(*(ask(endpoints[name], [user("go")]) for name in ("one", "two")))


FIRST = {"owl": "one"}


async def takes_turns(item: str, endpoints: Any) -> None:
    """Both agents are asked at once, but another one is first in each run."""
    first = FIRST[item]
    second = FIRST[item] = "two" if first == "one" else "one"
    await asyncio.gather(asks_late(endpoints[first], 0.0), asks_late(endpoints[second], 0.2))


async def swaps(item: str, endpoints: Any) -> None:
    """One agent is asked, another one in each run."""
    first = FIRST[item]
    FIRST[item] = "two" if first == "one" else "one"
    await ask(endpoints[first], [user("go")])


async def asks_late(url: str, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await ask(url, [user("go")])


async def pays(item: str, endpoints: Any) -> dict[str, float]:
    """Rewards of all kinds."""
    first = await ask(endpoints["one"], [user("a")])
    await ask(endpoints["two"], [user("b")])
    async with httpx.AsyncClient(verify=False) as client:
        for body in (
            {"value": 1.0},
            {"value": 2.0, "agent": "two"},
            {"value": 4.0, "call": first["id"]},
        ):
            (await client.post(endpoints.reward, json=body)).raise_for_status()
    return {"team": 8.0, "one": 16.0}


async def dies(item: str, endpoints: Any) -> None:
    """After one request."""
    await ask(endpoints["one"], [user("a")])
    raise RuntimeError("no more")


async def hangs(item: str, endpoints: Any) -> None:
    """After one request."""
    await ask(endpoints["one"], [user("a")])
    await asyncio.sleep(3600)


async def endless(item: str, endpoints: Any) -> None:
    """Asks as long as it is answered."""
    while "choices" in await ask(endpoints["one"], [user("a")]):
        pass


async def counts(item: str, endpoints: Any) -> float:
    """Its first words differ from run to run."""
    global _runs
    _runs += 1
    await ask(endpoints["one"], [user(f"run {_runs}")])
    return 0.0


_runs = 0
