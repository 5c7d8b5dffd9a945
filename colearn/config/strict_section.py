"""Base classes for the sections of a config. Unknown keys raise errors, numbers are validated
strictly, and names select classes."""

from __future__ import annotations

import re
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d{1,3}")
"""Pattern of a number such as 5e-6, which YAML 1.1 reads as a string."""
LARGEST = 10**12
"""Maximum absolute value of an integer in a config; larger values would cause memory errors or
endless loops."""
NOT_A_NUMBER = "not_a_number"
"""Type of the validation error that has the message of `number_problem`."""
_ROOM = 100
EACH = "*"
"""Wildcard name in `models` and `agents`: default settings of all models or agents that are not
named."""


class NumberError(Exception):
    """Raised for a value that is not a valid number; the message names the problem."""


def number_problem(hint: Any, value: Any) -> str | None:
    """Returns a description of the problem if `hint` requires a number and the value is not a valid
    number; otherwise returns None."""
    options = _options(hint)
    if isinstance(value, bool) or (isinstance(value, str) and not EXPONENT.fullmatch(value)):
        numbers = any(option in (int, float) for option in options)
        if numbers and not any(
            option in (str, bool, Any) or get_origin(option) is Literal for option in options
        ):
            text = repr(value)
            cut = text if len(text) <= _ROOM else f"{text[:_ROOM]} ..."
            return f"must be {'a number' if float in options else 'an integer'}, got {cut}"
    elif isinstance(value, int) and int in options and abs(value) > LARGEST:
        return f"must lie in {-LARGEST:,} to {LARGEST:,}"
    elif isinstance(value, list | tuple):
        inner = next((option for option in options if get_origin(option) in (tuple, list)), None)
        hints = (
            [argument for argument in get_args(inner) if argument is not Ellipsis] if inner else []
        )
        for number, element in enumerate(value if hints else ()):
            problem = number_problem(hints[min(number, len(hints) - 1)], element)
            if problem is not None:
                return problem
    return None


def _options(hint: Any) -> list[Any]:
    """Returns the types that a type hint allows. Unwraps Annotated and omits None."""
    if get_origin(hint) is Annotated:
        return _options(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [option for part in get_args(hint) for option in _options(part)]
    return [] if hint is type(None) else [hint]


class Section(BaseModel):
    """Typed settings; an unknown key raises an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        """Rejects booleans and strings if a number is required; pydantic would convert them."""
        assert info.field_name is not None
        problem = number_problem(cls.model_fields[info.field_name].annotation, value)
        if problem is not None:
            raise PydanticCustomError(NOT_A_NUMBER, "{problem}", {"problem": problem})
        return value


def _device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?", name):
        raise ValueError("no such device; use auto, cpu, cuda or cuda:1")
    return name


Device = Annotated[str, AfterValidator(_device)]


class Named(BaseModel):
    """`name` selects a registered class; the other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Chosen(Named):
    """A `Named` that may be given as a plain string: the name of a part with default settings."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_serializer
    def plain(self) -> str | dict[str, Any]:
        """Returns the YAML form, which is only the name if no setting is given."""
        return {"name": self.name, **self.settings} if self.settings else self.name
