"""Checks the settings of a dataclass against the bounds in their pydantic annotations; an error is
one line.

    lam: Annotated[float, Field(ge=0.0, le=1.0, description="0.95 is usual")] = 0.0
    ratio: Literal["sequence", "token"] = "sequence"

Checks that involve two fields stay in the class's `__post_init__`.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from colearn.errors import ConfigError

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, description="0 is off")]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Clip = Annotated[float, Field(gt=0.0, description="leave it out for no clip")]
Anneal = Annotated[float, Field(gt=0.0, le=1.0)]
"""A fraction of the training budget."""
Expectile = Annotated[float, Field(gt=0.0, lt=1.0, description="0.5 is the mean")]


def check_bounds(settings: Any) -> None:
    """Errors: ConfigError that names the first field out of bounds and the remedy."""
    for name, (adapter, message) in _bounded(type(settings)).items():  # type: ignore[arg-type]
        value = getattr(settings, name)
        try:
            adapter.validate_python(value)
        except ValidationError:
            raise ConfigError(f"{name}: {message.format(value)}") from None


@cache
def _bounded(cls: type) -> dict[str, tuple[TypeAdapter[Any], str]]:
    """Maps each field to its validator, and to its error message with a placeholder for the
    value."""
    checks = {}
    hints = get_type_hints(cls, include_extras=True)
    for name in (field.name for field in fields(cls) if field.init):
        hint = hints[name]
        for inner in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if get_origin(inner) is Literal:
                *others, last = map(str, get_args(inner))
                message = f"unknown '{{}}'; use {', '.join(others)} or {last}"
                checks[name] = TypeAdapter[Any](hint), message
            elif get_origin(inner) is Annotated:
                (bound,) = (
                    argument for argument in get_args(inner) if isinstance(argument, FieldInfo)
                )
                remedy = f"; {bound.description}" if bound.description else ""
                checks[name] = (
                    TypeAdapter[Any](hint),
                    f"must {_bound_text(bound)}, got {{}}{remedy}",
                )
    return checks


def _bound_text(bound: FieldInfo) -> str:
    bounds = {
        name: f"{getattr(constraint, name):g}"
        for constraint in bound.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(constraint, name)
    }
    match bounds:
        case {"ge": low, "le": high}:
            return f"lie in {low} to {high}"
        case {"gt": low, "lt": high}:
            return f"lie between {low} and {high}"
        case {"gt": low, "le": high}:
            return f"lie above {low} and up to {high}"
        case {"ge": low, "lt": high}:
            return f"be at least {low} and below {high}"
        case {"ge": low}:
            return f"be {low} or more"
        case {"gt": low}:
            return f"be above {low}"
    raise TypeError(f"no words for the bounds {bounds}")
