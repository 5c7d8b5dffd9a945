"""Completions that answer a program's requests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from colearn.contract import ActionRequest, Player, SampledAction, TokenAnswer
from colearn.contract.types import Action, AnswerLimits, Observation
from colearn.programs.gateway.answer import completion
from colearn.programs.gateway.contexts import Context
from colearn.programs.gateway.state import GatewayCall

TOKENS = [
    {"token": "blue", "logprob": -0.25, "bytes": [98, 108, 117, 101], "top_logprobs": []},
    {"token": "!", "logprob": -0.5, "bytes": [33], "top_logprobs": []},
]


class Speller(Player):
    """Counts how often it is asked for the texts of tokens, which costs time by the token."""

    spelled = 0

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        raise NotImplementedError

    def spell(self, action: Action) -> Sequence[bytes]:
        self.spelled += 1
        return [b"blue", b"!"]


@pytest.mark.parametrize("asked", [True, False])
def test_tokens_are_spelled_where_a_request_asks_for_their_log_probabilities(asked: bool) -> None:
    player = Speller()
    call = GatewayCall(
        number=0,
        name="one",
        text="which?",
        prompt=Observation("which?"),
        request="chatcmpl-0",
        logprobs=asked,
        context=Context(None, (("user", "which?"),)),
        reason="first",
    )
    said = SampledAction(Action("blue!", (3, 7), (-0.25, -0.5)), player, (5,) * 5)
    body, _ = completion(call, said)
    known = {"content": TOKENS, "refusal": None} if asked else None
    assert body["choices"][0]["logprobs"] == known
    assert player.spelled == asked


@pytest.mark.parametrize("cut", [False, True])
def test_a_program_receives_no_reasoning_and_no_call_that_it_drafts(cut: bool) -> None:
    calls = [f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in "ab"]
    text = f"<think>{calls[0]}" if cut else f"<think>{calls[0]}</think>Blue. {calls[1]}"
    call = GatewayCall(
        number=0,
        name="one",
        text="which?",
        prompt=Observation("which?"),
        request="chatcmpl-0",
        offered=("a", "b"),
        several=True,
        context=Context(None, (("user", "which?"),)),
        reason="first",
    )
    body, kept = completion(
        call, SampledAction(Action(text, (3, 7), (-0.25, -0.5)), Speller(), (5,) * 5)
    )
    message = body["choices"][0]["message"]
    called = [one["function"]["name"] for one in message.get("tool_calls", ())]
    assert (message["content"], called) == (("", []) if cut else ("Blue.", ["b"]))
    assert "think" not in kept


def test_a_stop_string_that_the_limit_completes_ends_an_answer() -> None:
    """Training counts it as cut, since the action is as long as it may be."""
    call = GatewayCall(
        number=0,
        name="one",
        text="which?",
        prompt=Observation("which?", limits=AnswerLimits(max_tokens=2, stop=("END",))),
        request="chatcmpl-0",
        context=Context(None, (("user", "which?"),)),
        reason="first",
    )
    for text, ending in (
        ("Blue END", ("Blue ", "END", "stop")),
        ("Blue", ("Blue", None, "length")),
    ):
        action = Action(text, (3, 7), (-0.25, -0.5), finish="length")
        (choice,) = completion(call, SampledAction(action))[0]["choices"]
        told = (choice["message"]["content"], choice["stop_reason"], choice["finish_reason"])
        assert told == ending


def test_reasoning_and_token_ids_are_sent_where_a_request_asks_for_them() -> None:
    text = "<think>hm</think>Blue. END"
    for asked in (True, False):
        call = GatewayCall(
            number=0,
            name="one",
            text="which?",
            prompt=Observation("which?", limits=AnswerLimits(stop=("END",))),
            request="chatcmpl-0",
            token_ids=asked,
            reasoning=asked,
            context=Context(None, (("user", "which?"),)),
            reason="first",
        )
        said = SampledAction(Action(text, (3, 7), (-0.25, -0.5)), Speller(), (5, 6))
        body, kept = completion(call, said)
        (choice,) = body["choices"]
        assert choice["message"].get("reasoning") == ("hm" if asked else None)
        assert body.get("prompt_token_ids") == ([5, 6] if asked else None)
        assert choice.get("token_ids") == ([3, 7] if asked else None)
        assert (choice["stop_reason"], kept, body["usage"]["prompt_tokens"]) == ("END", "Blue. ", 2)
