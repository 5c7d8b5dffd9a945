"""A served agent, spoken to by the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from asking import token_request
from exported import Threaded, export_tiny, serving_here
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI

from colearn.contract import Sampling
from colearn.contract.types import Action
from colearn.engines.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.models.load import load_base, load_tokenizer
from colearn.rollout.agents import AgentSpec, ChatFormat

ROLE = "be brief"
LONG = 24
HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tiny(tmp_path_factory.mktemp("exported") / "ada", max_tokens=LONG, end_scale=1)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Threaded]:
    with serving_here(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Threaded) -> OpenAI:
    return OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=600)


@pytest.fixture(scope="module")
def base(folder: Path) -> Base:
    import torch

    device = torch.device("cpu")
    return load_base(str(folder), compute="float32", trained=False, device=device, field="test")


def ask(client: OpenAI, text: str | None = None, session: str | None = None, **asked: Any) -> Any:
    messages: Any = HELLO if text is None else [{"role": "user", "content": text}]
    extra = {"return_token_ids": True, **({"session_id": session} if session else {})}
    given = {"model": "ada", "messages": messages, **asked}
    return client.chat.completions.create(**given, extra_body=extra)


def trained(base: Base, folder: Path, texts: list[str], seeds: list[int], **sampling: Any) -> Any:
    """Actions of the trainer's generator over the turns of one history."""
    chat = ChatFormat(load_tokenizer(str(folder), field="test"), system=ROLE)
    drawn = Sampling(max_tokens=LONG, **sampling)
    voices = {"ada": AgentSpec(adapter=None, chat=chat, sampling=drawn)}
    generator = TransformersEngine(base, voices)
    history, last, actions = None, None, []
    for text, seed in zip(texts, seeds, strict=True):
        seen = chat.open(text) if last is None else chat.continuation(text, last)
        request = token_request(voices, "ada", seen.tokens, (seed,), continues=history)
        ((sampled,),) = generator.generate([request])
        history, last = sampled.history, sampled.action
        actions.append(sampled.action)
    return actions


def test_the_model_list_has_the_agent(client: OpenAI, server: Threaded) -> None:
    assert [(m.id, m.owned_by) for m in client.models.list()] == [("ada", "colearn")]
    assert server.metric('colearn_requests_total{route="/v1/models",status="200"}') == 1


def test_a_request_of_no_route_is_counted_as_such(server: Threaded) -> None:
    assert server.get("/v1/nothing").status_code == 404
    assert server.metric('colearn_requests_total{route="none",status="404"}') == 1


def test_the_agent_is_shown_without_its_role_prompt(server: Threaded) -> None:
    shown = server.get("/v1/agent").json()
    assert shown["task"] == "notes"
    assert ROLE not in json.dumps(shown)


def test_a_stream_joins_to_the_answer(client: OpenAI) -> None:
    whole = ask(client, seed=7)
    parts = list(ask(client, seed=7, stream=True, stream_options={"include_usage": True}))
    *chunks, last = parts
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == (
        whole.choices[0].message.content
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert last.choices == [] and last.usage.completion_tokens == whole.usage.completion_tokens


def test_a_stream_with_log_probabilities_has_those_of_the_answer(client: OpenAI) -> None:
    (whole,) = ask(client, seed=7, logprobs=True).choices
    stream = ask(client, session="noted", seed=7, logprobs=True, stream=True)
    parts = [part.choices[0] for part in stream]
    told = [entry for part in parts if part.logprobs for entry in part.logprobs.content]
    assert told == whole.logprobs.content
    assert "".join(part.delta.content or "" for part in parts) == whole.message.content
    alone, behind = ask(client, "go on").usage, ask(client, "go on", "noted").usage
    assert behind.prompt_tokens > alone.prompt_tokens + len(told)  # its turn is in the session


def test_max_tokens_ends_an_answer(client: OpenAI) -> None:
    answer = ask(client, seed=7, max_tokens=3)
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (3, "length")


@pytest.mark.parametrize("stream", (False, True))
def test_a_stop_text_is_not_in_the_answer(client: OpenAI, stream: bool) -> None:
    text = ask(client, seed=7).choices[0].message.content
    stop = text[5:7]
    expected = text[: text.index(stop)]
    answer = ask(client, seed=7, stop=[stop], stream=stream)
    if stream:
        parts = [chunk.choices[0] for chunk in answer]
        answered = "".join(part.delta.content or "" for part in parts), parts[-1].finish_reason
    else:
        answered = answer.choices[0].message.content, answer.choices[0].finish_reason
    assert answered == (expected, "stop")


def test_logprobs_are_the_trainers(client: OpenAI, base: Base, folder: Path) -> None:
    (action,) = trained(base, folder, ["hello"], [7])
    (choice,) = ask(client, seed=7, logprobs=True, top_logprobs=2).choices
    noted = choice.logprobs.content
    assert [entry.logprob for entry in noted] == pytest.approx(action.logprobs, abs=1e-5)
    assert all(len(entry.top_logprobs) == 2 for entry in noted)
    assert all(e.top_logprobs[0].logprob >= e.logprob - 1e-6 for e in noted)


def test_several_choices_differ_and_the_first_is_the_seeds(client: OpenAI) -> None:
    texts = [choice.message.content for choice in ask(client, seed=7, n=3).choices]
    assert texts[0] == ask(client, seed=7).choices[0].message.content
    assert len(set(texts)) == 3


def test_the_systems_message_replaces_the_role_prompt(client: OpenAI) -> None:
    messages: Any = [{"role": "system", "content": ROLE}, *HELLO]
    own = ask(client, seed=7, messages=messages)
    other = ask(client, seed=7, messages=[{"role": "system", "content": "be long"}, *HELLO])
    assert own.choices[0].message.content == ask(client, seed=7).choices[0].message.content
    assert other.usage.prompt_tokens == own.usage.prompt_tokens - 1
    assert other.choices[0].message.content != own.choices[0].message.content


@pytest.mark.parametrize(
    ("field", "value"),
    (
        ("temperature", "hot"),
        ("tools.0.function", [{"type": "function"}]),
        ("response_format", {"type": "json_object"}),
    ),
)
def test_a_wrong_field_is_named(client: OpenAI, field: str, value: Any) -> None:
    messages = [{"role": "user", "content": "hello"}]
    with pytest.raises(BadRequestError) as refused:
        client.post("/chat/completions", cast_to=object, body={"messages": messages, field: value})
    assert refused.value.param == field


def test_another_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as refused:
        ask(client, model="ben")
    assert refused.value.code == "model_not_found"


def test_a_prompt_beyond_the_context_is_refused(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as refused:
        ask(client, "long " * 300)
    assert refused.value.code == "context_length_exceeded"


@pytest.mark.parametrize("temperature", (0.0, 1.0))
def test_a_sessions_turns_are_the_trainers(
    client: OpenAI, base: Base, folder: Path, temperature: float
) -> None:
    texts, seeds = ["hello", "and then", "the end?"], [3, 4, 5]
    actions = trained(base, folder, texts, seeds, temperature=temperature)
    name = f"turns-{temperature:g}"
    for text, seed, action in zip(texts, seeds, actions, strict=True):
        answer = ask(client, text, name, seed=seed, temperature=temperature)
        assert tuple(answer.choices[0].token_ids) == action.tokens
        assert answer.choices[0].message.content == action.text


def test_a_turn_prefills_only_its_new_tokens(client: OpenAI, server: Threaded) -> None:
    first = ask(client, "a long story, " * 10, "cached").usage
    before = server.metric("colearn_prefilled_tokens_total")
    second = ask(client, "go on", "cached").usage
    new = second.prompt_tokens - first.total_tokens + 1  # the last sampled token is not cached yet
    assert server.metric("colearn_prefilled_tokens_total") - before == new
    assert second.prompt_tokens_details.cached_tokens == second.prompt_tokens - new


def test_a_session_takes_its_whole_history_or_the_new_text(client: OpenAI) -> None:
    first = ask(client, "hello", "whole", seed=1).choices[0].message.content
    messages: Any = [*HELLO, {"role": "assistant", "content": first}]
    messages.append({"role": "user", "content": "go on"})
    whole = ask(client, session="whole", messages=messages, seed=2)
    ask(client, "hello", "new", seed=1)
    new = ask(client, "go on", "new", seed=2)
    assert whole.choices[0].token_ids == new.choices[0].token_ids
    assert whole.usage == new.usage


def test_a_cut_answer_stays_whole_in_its_session(client: OpenAI) -> None:
    first = ask(client, "hello", "uncut", seed=7)
    text = first.choices[0].message.content
    cut = ask(client, "hello", "cut", seed=7, stop=text[3])
    kept = cut.choices[0].token_ids
    prompt = cut.usage.prompt_tokens
    go_on = ask(client, "go on", "cut", seed=8).usage
    assert len(kept) < len(first.choices[0].token_ids)
    assert go_on.prompt_tokens_details.cached_tokens == prompt + len(kept) - 1


def refusal(client: OpenAI, *arguments: Any, **asked: Any) -> tuple[int, str | None]:
    with pytest.raises(APIStatusError) as refused:
        ask(client, *arguments, **asked)
    return refused.value.status_code, refused.value.code


def test_sessions_refuse_what_does_not_fit_them(client: OpenAI) -> None:
    turns: Any = [*HELLO, {"role": "assistant", "content": "no"}, *HELLO]
    assert refusal(client, session="never", messages=turns) == (404, "session_not_found")
    ask(client, "hello", "known")
    assert refusal(client, session="known", messages=turns) == (409, "session_conflict")
    assert refusal(client, session="known", n=2) == (400, "invalid_value")


def test_a_forgotten_session_is_unknown(client: OpenAI, server: Threaded) -> None:
    answer = ask(client, "hello", "short-lived").choices[0].message.content
    url = server.url + "/v1/sessions/short-lived"
    assert [httpx.delete(url).status_code for _ in range(2)] == [204, 404]
    turns: Any = [*HELLO, {"role": "assistant", "content": answer}, *HELLO]
    assert refusal(client, session="short-lived", messages=turns) == (404, "session_not_found")


def test_sessions_side_by_side_do_not_mix(client: OpenAI, base: Base, folder: Path) -> None:
    def play(number: int) -> list[Action]:
        texts = [f"I am {number}", "who am I?"]
        return [
            ask(client, text, f"mixed-{number}", seed=number).choices[0].token_ids for text in texts
        ]

    with ThreadPoolExecutor(6) as pool:
        by_session = list(pool.map(play, range(6)))
    for number, tokens in enumerate(by_session):
        texts = [f"I am {number}", "who am I?"]
        alone = trained(base, folder, texts, [number, number])
        assert [tuple(part) for part in tokens] == [action.tokens for action in alone]


def test_a_busy_session_says_so(client: OpenAI) -> None:
    stream = ask(client, "hello", "busy", stream=True, max_tokens=600, temperature=0)
    next(iter(stream))
    assert refusal(client, "hello", "busy") == (409, "session_busy")
    stream.close()
