"""What a session keeps of a turn, for the turn after it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from exported import export_tiny
from tiny import CHAT, byte_tokenizer

from colearn.contract.types import Action
from colearn.deploy.client.protocol.limits import ServerLimits
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.deploy.serve.agent import ServedAgent
from colearn.deploy.serve.service import Service
from colearn.rollout.agents import ChatFormat
from colearn.runs.record.checksums import write_checksums

ROLE = "be brief"
REASONING = CHAT.replace("m['content']", "m['content'].replace('</think>', '</think>')", 1)
"""The usual template, which now names the mark that closes reasoning."""
OPENING = REASONING.replace("<|assistant|>{% endif %}", "<|assistant|><think>\n{% endif %}")


def exported(folder: Path, template: str) -> ServedAgent:
    export_tiny(folder, system=ROLE)
    byte_tokenizer(template=template).save_pretrained(folder)
    write_checksums(folder)
    return ServedAgent(folder, device="cpu")


async def second_prompt(agent: ServedAgent, answer: str, second: Any, **first: Any) -> Any:
    """The request that the engine gets for the second turn of a session, whose first answer was
    `answer`, cut."""
    service = Service(agent, ServerLimits(), lambda: None)
    said = [{"role": "user", "content": "hello"}]
    try:
        for messages in (said, second):
            asked = ChatRequest.model_validate({"messages": messages, "session_id": "one", **first})
            turn = await service.begin(asked, lambda event: None)
            (choice,) = turn.job.choices
            choice.text, choice.tokens = answer, list(agent.decoder.spell(answer))
            choice.history = turn.job.request.history.act(choice.tokens)
            service.commit(turn)
            service.end(turn)
    finally:
        service.worker.start()
        service.close()
    return turn.job.request


@pytest.mark.parametrize(
    ("template", "answer"),
    [(CHAT, "cut"), (REASONING, "<think>\ncut"), (REASONING, "<think>a</think>b"), (OPENING, "c")],
)
def test_a_session_continues_a_cut_answer_as_training_does(
    template: str, answer: str, tmp_path: Path
) -> None:
    chat = ChatFormat(byte_tokenizer(template=template), system=ROLE)
    tokens = chat.spell(answer)
    action = Action(chat.opened_reasoning("hello") + answer, tokens)
    trained = (*chat.open("hello").tokens, *tokens, *chat.continuation("more", action).tokens)
    agent = exported(tmp_path / "ada", template)
    more = [{"role": "user", "content": "more"}]
    asked = asyncio.run(second_prompt(agent, answer, more))
    assert tuple(asked.history.ids) == trained


def test_a_session_knows_its_own_tool_calls_again(tmp_path: Path) -> None:
    arguments = '{"b": 1, "a": "x"}'
    call = {"id": "1", "function": {"name": "look", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Well.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
    ]
    answer = f'Well.\n<tool_call>{{"name": "look", "arguments": {arguments}}}</tool_call>'
    agent = exported(tmp_path / "ada", CHAT)
    tools = [{"type": "function", "function": {"name": "look"}}]
    asked = asyncio.run(second_prompt(agent, answer, messages, tools=tools))
    text = agent.decoder.tokenizer.decode(list(asked.history.ids))
    assert text.endswith(f"{answer}<|end|><|user|><tool_response>seen</tool_response><|assistant|>")
