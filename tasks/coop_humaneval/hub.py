"""Problems on the hub: CoopHumanEval, HumanEval and MBPP, all converted to HumanEval's row
format."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from colearn.errors import ConfigError

from ..rows import HubSplit


def mbpp_row(row: Mapping[str, Any]) -> dict[str, str]:
    """Converts a row of MBPP, which names no function. The function to write is the one from the
    row's solution that the first test calls, with the task's text as its docstring. The solution is
    not kept.

    Errors: ConfigError if the first test calls no function of the solution.
    """
    name = f"MBPP/{row['task_id']}"
    functions = {
        statement.name: statement
        for statement in ast.parse(row["code"]).body
        if isinstance(statement, ast.FunctionDef)
    }
    called = ast.walk(ast.parse(row["test_list"][0]))
    words = (node.id for node in called if isinstance(node, ast.Name))
    entry_point = next((word for word in words if word in functions), None)
    if entry_point is None:
        raise ConfigError(f"task.data: the first test of {name} calls no function of its code")
    function = functions[entry_point]
    function.body = [ast.Expr(ast.Constant(row["prompt"]))]
    function.decorator_list, function.returns = [], None
    return {
        "task_id": name,
        "prompt": ast.unparse(function) + "\n",
        "entry_point": entry_point,
        "test": "\n".join([*row.get("test_imports", ()), *row["test_list"]]) + "\n",
    }


HUB_SETS = {
    "hub": HubSplit("OpenMLRL/CoopHumanEval", None, None, dict),
    "humaneval": HubSplit("openai/openai_humaneval", None, None, dict),
    "mbpp": HubSplit("google-research-datasets/mbpp", "sanitized", None, mbpp_row),
}
"""Data sets by their names in `task.data`; `hub` is the paper's data set."""
