"""The tools that are shipped: a calculator that cannot run anything, a sandboxed program."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from colearn.programs.workflow.tools import calculate, run_code
from colearn.programs.workflow.tools.mcp import _ToolServer, result_text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("-(2 ** 10) // 3", "-342"),
        ("1 / 3", "0.333333333333"),
        ("sqrt(16) + max(1, 2)", "6"),
        ("7 % 4", "3"),
        ("2 * pi", "6.28318530718"),
    ],
)
def test_the_calculator_knows_arithmetic(expression, value):
    assert asyncio.run(calculate(expression)) == value


@pytest.mark.parametrize(
    "expression",
    [
        *("__import__('os')", "().__class__", "x", "1 if 1 else 2", "[1]", "'a' * 9", "True"),
        *(
            "9 ** 9 ** 9",
            "10 ** 5000",
            "(10 ** 999 * 100) ** 2",
            "1 +",
            "1" * 300,
            "round(1, ndigits=2)",
        ),
        *("round(5, -1000000)", "((9 ** 1000) ** 25) % 7", "max(1)", "sqrt()", "round(2.5, 3.5)"),
    ],
)
def test_the_calculator_runs_nothing_else(expression):
    with pytest.raises(ValueError):
        asyncio.run(calculate(expression))


@pytest.mark.parametrize(
    "expression", ["1 / 0", "(-8) ** 0.5", "2.0 ** 1000 ** 1 * 2.0 ** 1000 / 0"]
)
def test_an_expression_without_a_value_is_an_arithmetic_error(expression):
    with pytest.raises(ArithmeticError):
        asyncio.run(calculate(expression))


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
