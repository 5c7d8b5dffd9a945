"""Programs of a gateway task that ask with the official clients. Their result is 1.0 if they
receive what was sampled: reasoning `hm`, the text `So.` and a call of `look`."""

from __future__ import annotations

from typing import Any

import anthropic
import openai

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}
FUNCTION: Any = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}
TOOL: Any = {"name": "look", "input_schema": SCHEMA}
ASKED: Any = [{"role": "user", "content": "What do you see?"}]


def chat_client(endpoints: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=endpoints["one"], api_key="none", max_retries=0)


def message_client(endpoints: Any) -> anthropic.Anthropic:
    url = endpoints["one"].removesuffix("/v1")
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


def read_response(response: Any) -> Any:
    reasoning, message, call = response.output
    assert [part.text for part in reasoning.content] == ["hm"]
    assert (response.output_text, response.status) == ("So.", "completed")
    assert message.content[0].text == "So."
    assert (call.name, call.arguments) == ("look", '{"at": "sky"}')
    return call


def read_message(message: Any) -> Any:
    thinking, text, call = message.content
    assert (thinking.thinking, text.text) == ("hm", "So.")
    assert (call.name, call.input, message.stop_reason) == ("look", {"at": "sky"}, "tool_use")
    return call


def responses_tools(item: str, endpoints: Any) -> float:
    client, items = chat_client(endpoints), list(ASKED)
    answer = client.responses.create(model="one", input=items, tools=[FUNCTION])
    call = read_response(answer)
    items += [item.model_dump() for item in answer.output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "TAINT"})
    last = client.responses.create(model="one", input=items, tools=[FUNCTION])
    return float(last.output_text == "Blue.")


def messages_tools(item: str, endpoints: Any) -> float:
    client, messages = message_client(endpoints), list(ASKED)

    def ask() -> Any:
        return client.messages.create(model="one", max_tokens=99, messages=messages, tools=[TOOL])

    answer = ask()
    result = {
        "type": "tool_result",
        "tool_use_id": read_message(answer).id,
        "content": "TAINT",
    }
    messages += [answer.to_param(), {"role": "user", "content": [result]}]
    return float(ask().content[0].text == "Blue.")


def responses_stream(item: str, endpoints: Any) -> float:
    client = chat_client(endpoints)
    with client.responses.stream(model="one", input=ASKED, tools=[FUNCTION]) as stream:
        last: Any = list(stream)[-1]
    read_response(last.response)
    read_response(stream.get_final_response())
    return 1.0


def messages_stream(item: str, endpoints: Any) -> float:
    client = message_client(endpoints)
    with client.messages.stream(model="one", max_tokens=99, messages=ASKED, tools=[TOOL]) as stream:
        read_message(stream.get_final_message())
    return 1.0
