"""Arguments of a Python function as data: binding, JSON schema, validation, call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from colearn.text.plain_data import plain_data
from colearn.text.validation import first_fault

Parameter = inspect.Parameter


class SignatureArguments:
    """The arguments that a function's signature describes.

    Names of arguments are keys of a dictionary, so any name that a signature may have can be used.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function, eval_str=True).parameters
        self._name = getattr(function, "__name__", "arguments")
        self._parameters = {
            name: parameter
            for name, parameter in parameters.items()
            if parameter.kind is not Parameter.VAR_KEYWORD
        }
        self._others: TypeAdapter[Any] | None = None
        """Type of an argument beyond the named ones; None if there are no further arguments."""
        for parameter in parameters.values():
            if parameter.kind is Parameter.VAR_KEYWORD:
                self._others = _adapter(_type(parameter))
        self._fields = {name: _field(one) for name, one in self._parameters.items()}
        self._types: dict[str, TypeAdapter[Any]] = {
            name: _adapter(Annotated[field.annotation, field])
            for name, field in self._fields.items()
        }

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments by name."""
        by_name, shared = TypeAdapter.json_schemas(
            [(name, "validation", adapter) for name, adapter in self._types.items()]
        )
        schema: dict[str, Any] = {
            "properties": {name: by_name[name, "validation"] for name in self._types},
            "title": self._name,
            "type": "object",
            **shared,
        }
        if required := [name for name in self._types if self._fields[name].is_required()]:
            schema["required"] = required
        if self._others is not None:
            schema["additionalProperties"] = self._others.json_schema()
        return schema

    def bind(self, args: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Assigns the given values to names, as a call of the function does, and returns them as
        JSON's types. Defaults are not added.

        Errors: TypeError and ValueError for arguments that do not fit.
        """
        values = self._assigned(args, arguments)
        missing = [name for name in self._types if self._lacks(name, values)]
        if missing:
            raise TypeError(f"missing a required argument: {missing[0]!r}")
        plain = {name: plain_data(value) for name, value in values.items()}
        self.read(plain)
        return plain

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns values of JSON's types as the types of the signature.

        Errors: TypeError and ValueError for values that do not fit.
        """
        typed = {}
        for name, value in values.items():
            adapter = self._types.get(name, self._others)
            if adapter is None:
                raise TypeError(f"got an unexpected keyword argument {name!r}")
            try:
                typed[name] = adapter.validate_python(value)
            except ValidationError as error:
                path, faults = first_fault(error, value)
                where = ".".join(map(str, (name, *path)))
                raise ValueError(f"{where}: {faults[0]['msg']}") from None
        return typed

    def call(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """Calls the function with these values."""
        placed: list[Any] = []
        named = {name: value for name, value in values.items() if name not in self._parameters}
        rest = any(
            one.kind is Parameter.VAR_POSITIONAL and values.get(name)
            for name, one in self._parameters.items()
        )
        for name, parameter in self._parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                placed += values.get(name, ())
                continue
            if name in values:
                value = values[name]
            else:
                value = self._fields[name].get_default(call_default_factory=True, validated_data={})
            by_place = rest and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            if by_place or parameter.kind is Parameter.POSITIONAL_ONLY:
                placed.append(value)
            else:
                named[name] = value
        return function(*placed, **named)

    def _assigned(self, args: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        rest = list(args)
        for name, parameter in self._parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                if rest:
                    values[name], rest = rest, []
            elif rest and parameter.kind is not Parameter.KEYWORD_ONLY:
                values[name] = rest.pop(0)
        if rest:
            raise TypeError("too many positional arguments")
        for name, value in arguments.items():
            if name in values:
                raise TypeError(f"multiple values for argument {name!r}")
            values[name] = value
        return values

    def _lacks(self, name: str, values: Mapping[str, Any]) -> bool:
        return name not in values and self._fields[name].is_required()


@lru_cache(maxsize=256)
def signature_arguments(function: Callable[..., Any]) -> SignatureArguments:
    """The arguments of a function, cached because reading a signature is slow."""
    return SignatureArguments(function)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _type(parameter: Parameter) -> Any:
    return Any if parameter.annotation is parameter.empty else parameter.annotation


def _field(parameter: Parameter) -> FieldInfo:
    """Type, default and description of a parameter; a default may be pydantic's `Field(...)`."""
    kind = _type(parameter)
    if parameter.kind is Parameter.VAR_POSITIONAL:
        several: Any = list[kind]  # type: ignore[valid-type]
        return FieldInfo.from_annotated_attribute(several, ())
    if parameter.default is parameter.empty:
        return FieldInfo.from_annotation(kind)
    return FieldInfo.from_annotated_attribute(kind, parameter.default)
