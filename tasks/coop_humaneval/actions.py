"""Scripted answers for warm-starting the embedded model."""

from __future__ import annotations

import ast

import numpy as np

from .data import HumanEvalProblem
from .parse import AUX

_AUX_BODIES = ("return {p}", "return sorted({p})", "return len({p})")
_MAIN_BODIES = ("return {p}", "return aux({p})", "found = aux({p}); return len(found)")


def legal_function(problem: HumanEvalProblem, agent: str, rng: np.random.Generator) -> str:
    """Returns a small legal function on one line, chosen independently of the other agent. If the
    problem has a solution, a quarter of the draws return it."""
    number = 0 if agent == AUX else 1
    if problem.reference is not None and rng.random() < 0.25:
        return one_line(problem.reference[number])
    bodies = _MAIN_BODIES if number else _AUX_BODIES
    names = [part.split("=")[0].split(":")[0].strip(" *") for part in problem.params.split(",")]
    param = next((name for name in names if name.isidentifier()), "None")
    body = bodies[int(rng.integers(len(bodies)))].format(p=param)
    if number:
        return f"def {problem.entry_point}({problem.params}): {body}"
    return f"def {AUX}({param if param != 'None' else '*_'}): {body}"


def one_line(source: str) -> str:
    """A trusted function on one line, if its body has no compound statement."""
    (node,) = ast.parse(source).body
    if not isinstance(node, ast.FunctionDef) or any(hasattr(s, "body") for s in node.body):
        return source
    body = "; ".join(ast.unparse(statement) for statement in node.body)
    return f"def {node.name}({ast.unparse(node.args)}): {body}"
