"""Safe evaluation of untrusted arithmetic expressions."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping

LONGEST = 200
"""Maximum number of characters of an expression."""
LARGEST_POWER = 1000
"""Maximum of an exponent, of the digits of an integer base, and of the places of `round`."""
LARGEST_BITS = 2**16
"""Maximum number of bits of an integer power, whose computation cannot be interrupted."""

Number = int | float

_TWO: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ONE: Mapping[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "round": round,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


async def calculate(expression: str) -> str:
    """Evaluates an arithmetic expression: + - * / // % **, brackets, sqrt, log and the like.

    Errors: ValueError for anything else, ArithmeticError for an undefined value.
    """
    if len(expression) > LONGEST:
        raise ValueError(f"an expression has at most {LONGEST} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("not an arithmetic expression") from None
    value = _value(tree.body)
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _ONE:
            return _ONE[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _TWO:
            return _TWO[type(sign)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _called(name, list(map(_value, args)))
    raise ValueError("numbers, + - * / // % **, brackets and a few functions only")


def _called(name: str, arguments: list[Number]) -> Number:
    if name == "round" and any(abs(places) > LARGEST_POWER for places in arguments[1:]):
        raise ValueError(f"round takes at most {LARGEST_POWER} places")
    try:
        return _FUNCTIONS[name](*arguments)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > LARGEST_POWER or (isinstance(base, int) and abs(base) > 10**LARGEST_POWER):
        raise ValueError(f"an exponent is at most {LARGEST_POWER}")
    if isinstance(base, int) and base.bit_length() * exponent > LARGEST_BITS:
        raise ValueError(f"a power has at most {LARGEST_BITS} bits")
    value = base**exponent
    if isinstance(value, complex):
        raise ArithmeticError("no real value")
    return value
