"""The official clients of OpenAI and Anthropic, at the gateway and at a served agent, in all three
protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from exported import Threaded, export_tiny, serving_here

from colearn.contract import SampledAction
from colearn.contract.types import Action
from colearn.programs.gateway.task import Gateway
from tests.helpers.gateway_programs import RNG, opened

CALL = '<tool_call>{"name": "look", "arguments": {"at": "sky"}}</tool_call>'
TOKEN = "open-sesame"


def asked(play: str, said: list[str]) -> Any:
    """The last state of a program whose agent says the texts, each with tokens of its own."""
    items = "tests.helpers.gateway_programs:items"
    play = f"tests.helpers.protocol_programs:{play}"
    task = opened(Gateway(("one",), items, play=play, timeout=60.0, horizon=8))
    state, number = task.reset("owl", RNG), 0
    while not state.finished:
        actions = {}
        for agent in task.agents:
            if task.observe(state, agent) is not None:
                action = Action(said[number], (number, 7), (-0.5, -0.25))
                actions[agent] = SampledAction(action, None, (1, 2, number))
                number += 1
        state = task.step(state, actions, RNG).state
    return state


@pytest.mark.parametrize("play", ["responses_tools", "messages_tools"])
def test_a_program_calls_a_tool_and_continues_its_context(play: str) -> None:
    state = asked(play, [f"<think>hm</think>So. {CALL}", "Blue."])
    assert state.failure is None, state.failure
    first, second = (event.call for event in state.events)
    assert "look" in first.prompt.system and first.prompt.text == "What do you see?"
    assert (second.reason, second.prompt.fresh) == ("continued", False)
    assert second.prompt.text == "<tool_response>TAINT</tool_response>"
    assert state.measured["reward"] == 1.0


@pytest.mark.parametrize("play", ["responses_stream", "messages_stream"])
def test_a_stream_gives_a_program_the_whole_answer(play: str) -> None:
    state = asked(play, [f"<think>hm</think>So. {CALL}"])
    assert state.failure is None, state.failure
    assert state.measured["reward"] == 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tiny(tmp_path_factory.mktemp("exported") / "ada", max_tokens=12, end_scale=1)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Threaded]:
    with serving_here(folder, token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def chat(server: Threaded) -> openai.OpenAI:
    url = server.url + "/v1"
    return openai.OpenAI(base_url=url, api_key=TOKEN, max_retries=0, timeout=600)


@pytest.fixture(scope="module")
def messages(server: Threaded) -> anthropic.Anthropic:
    url = server.url
    return anthropic.Anthropic(base_url=url, api_key=TOKEN, max_retries=0, timeout=600)


IDS = {"seed": 7, "return_token_ids": True}
HELLO: Any = [{"role": "user", "content": "hello"}]


def test_a_served_agent_answers_alike_in_all_protocols(
    chat: openai.OpenAI, messages: anthropic.Anthropic
) -> None:
    completion: Any = chat.chat.completions.create(model="ada", messages=HELLO, extra_body=IDS)
    response: Any = chat.responses.create(model="ada", input="hello", extra_body=IDS)
    message: Any = messages.messages.create(
        model="ada", messages=HELLO, max_tokens=12, extra_body=IDS
    )
    prompt, choice = completion.prompt_token_ids, completion.choices[0]
    assert prompt and choice.token_ids
    assert (response.prompt_token_ids, response.token_ids) == (prompt, choice.token_ids)
    assert (message.prompt_token_ids, message.token_ids) == (prompt, choice.token_ids)
    assert response.output_text == message.content[0].text == choice.message.content
    assert response.usage.output_tokens == message.usage.output_tokens == len(choice.token_ids)


def test_a_served_agent_streams_in_all_protocols(
    chat: openai.OpenAI, messages: anthropic.Anthropic
) -> None:
    whole: Any = chat.responses.create(model="ada", input="hello", extra_body=IDS)
    with chat.responses.stream(model="ada", input="hello", extra_body=IDS) as stream:
        events = list(stream)
    parts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(parts) > 1 and "".join(parts) == whole.output_text
    last: Any = events[-1]
    assert last.response.token_ids == whole.token_ids
    assert last.response.status == whole.status
    with messages.messages.stream(
        model="ada", messages=HELLO, max_tokens=12, extra_body=IDS
    ) as told:
        texts = list(told.text_stream)
        final = told.get_final_message()
    assert texts == parts
    assert final.usage.output_tokens == len(whole.token_ids)
    assert final.stop_reason == ("max_tokens" if whole.status == "incomplete" else "end_turn")


def test_a_served_agent_refuses_in_the_clients_own_errors(
    chat: openai.OpenAI, messages: anthropic.Anthropic, server: Threaded
) -> None:
    with pytest.raises(openai.BadRequestError, match="max_output_tokens': at most 4096 here"):
        chat.responses.create(model="ada", input="hello", max_output_tokens=5000)
    image: Any = {"type": "image", "source": {"type": "url", "url": "http://x"}}
    with pytest.raises(anthropic.BadRequestError, match="agents read text only") as refused:
        messages.messages.create(
            model="ada", max_tokens=9, messages=[{"role": "user", "content": [image]}]
        )
    assert refused.value.body["type"] == "error"  # type: ignore[index]
    wrong = {"headers": {"x-api-key": "wrong"}, "json": {}}
    url = f"{server.url}/v1/messages"
    assert httpx.post(url, **wrong).status_code == 401  # type: ignore[arg-type]
    right = {"x-api-key": TOKEN}
    body = {"model": "ada", "max_tokens": 3, "messages": HELLO}
    answer = httpx.post(url, headers=right, json=body, timeout=600).json()
    assert answer["stop_reason"] in ("max_tokens", "end_turn")
