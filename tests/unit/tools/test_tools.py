"""The tools that are shipped: a sandboxed program, the tools of an MCP server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from colearn.programs.workflow.tools import run_code
from colearn.programs.workflow.tools.mcp import _ToolServer, result_text


def test_a_program_s_output_is_its_result_and_its_error_a_line_of_it():
    assert asyncio.run(run_code("print(int(input()) + 1)", "41")) == "42\n"
    assert asyncio.run(run_code("print(1)\nraise KeyError('k')")) == "1\n\nexception: KeyError: 'k'"


@pytest.mark.parametrize(
    ("texts", "content", "shown"),
    [
        ([], {"n": 1}, '{"n": 1}'),
        ([""], {"n": 1}, '{"n": 1}'),
        (["one row"], {"n": 1}, 'one row\n{"n": 1}'),
        (['{\n "n": 1}'], {"n": 1}, '{\n "n": 1}'),
        ([], {"result": None}, '{"result": null}'),
        (["owl"], {"result": "owl"}, "owl"),
        (["1.0"], {"result": 1.0}, "1.0"),
        (["a", "b"], {"result": ["a", "b"]}, "a\nb"),
        (["2"], {"result": [2]}, "2"),
        (["owl"], None, "owl"),
        ([], {"result": []}, '{"result": []}'),
        (["[]"], {"result": []}, "[]"),
        (["1"], {"result": True}, '1\n{"result": true}'),
        (["true"], {"result": True}, "true"),
        (['{"b": 1, "a": [false]}'], {"a": [False], "b": 1}, '{"b": 1, "a": [false]}'),
        (['{"a": [0]}'], {"a": [False]}, '{"a": [0]}\n{"a": [false]}'),
    ],
)
def test_structured_content_is_shown_unless_the_texts_state_it(texts, content, shown):
    parts = [SimpleNamespace(type="text", text=text) for text in texts]
    result = SimpleNamespace(content=parts, structured_content=content)
    assert result_text(result) == shown


@pytest.mark.parametrize(
    ("texts", "content", "shown"),
    [
        (["database refused"], {"answer": 42}, 'database refused\n{"answer": 42}'),
        ([], {"code": "RATE_LIMITED"}, '{"code": "RATE_LIMITED"}'),
        ([], None, "the server reports an error without a text"),
    ],
)
def test_an_error_keeps_its_text_and_its_structured_content(texts, content, shown):
    class Failed(Exception):
        pass

    async def call_tool(name, arguments):
        parts = [SimpleNamespace(type="text", text=text) for text in texts]
        return SimpleNamespace(content=parts, structured_content=content, is_error=True)

    server = object.__new__(_ToolServer)
    server.mcp, server.client = (
        SimpleNamespace(MCPError=Failed),
        SimpleNamespace(call_tool=call_tool),
    )
    with pytest.raises(RuntimeError) as caught:
        asyncio.run(server._call("query", {}))
    assert str(caught.value) == shown


def test_structured_content_is_shown_beside_an_image():
    image = SimpleNamespace(type="image", data="AAAA", mime_type="image/png")
    result = SimpleNamespace(content=[image], structured_content={"n": 1})
    assert result_text(result) == '[image: image/png]\n{"n": 1}'
