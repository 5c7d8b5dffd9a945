"""The tools that are shipped: a calculator that cannot run anything, a sandboxed program."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from colearn.workflow.tools import calculate, run_code
from colearn.workflow.tools.mcp import _signature


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


def test_an_argument_of_a_tool_server_may_be_of_several_types():
    offered = {"text": {"type": ["string", "null"]}, "times": {"type": "integer"}}
    signature = _signature("repeat", {"properties": offered, "required": ["text", "times"]})
    assert [one.annotation for one in signature.parameters.values()] == [Any, int]
