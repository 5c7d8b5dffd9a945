"""Arguments of a Python function as data: binding, JSON schema, validation, call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs

from colearn.errors import ConfigError
from colearn.text.plain_data import plain_data
from colearn.text.validation import first_fault

Parameter = inspect.Parameter


class SignatureArguments:
    """The arguments that a function's signature describes, as pydantic reads it.

    Names of arguments are keys of a dictionary, so any name that a signature may have can be used.
    Errors: ConfigError for a parameter that cannot be given by name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function, eval_str=True)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL):
                raise ConfigError(
                    f"tools: '{function.__name__}' has the parameter '{parameter}', which has no "
                    "name in a call; let it be given by name"
                )

        @wraps(function)
        def given(**arguments: Any) -> dict[str, Any]:
            return arguments

        signature: Any = given  # pydantic reads functions, too
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(signature)
        except PydanticUserError as error:
            raise ConfigError(
                f"tools: '{function.__name__}' has a parameter whose type cannot be read "
                f"({error.message.splitlines()[0]}); give it a type that JSON can hold"
            ) from None

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments by name."""
        return self._adapter.json_schema()

    def bind(self, args: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Assigns the given values to names, as a call of the function does, and returns them as
        JSON's types. Defaults are not added.

        Errors: TypeError and ValueError for arguments that do not fit.
        """
        values = self._signature.bind(*args, **arguments).arguments
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is Parameter.VAR_KEYWORD:
                values |= values.pop(name, {})
        plain = {name: plain_data(value) for name, value in values.items()}
        self.read(plain)
        return plain

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns values of JSON's types as the types of the signature, with defaults.

        Errors: ValueError for values that do not fit.
        """
        try:
            typed: dict[str, Any] = self._adapter.validate_python(ArgsKwargs((), dict(values)))
        except ValidationError as error:
            path, faults = first_fault(error, values)
            raise ValueError(f"{'.'.join(map(str, path))}: {faults[0]['msg']}") from None
        return typed


@lru_cache(maxsize=256)
def signature_arguments(function: Callable[..., Any]) -> SignatureArguments:
    """The arguments of a function, cached because reading a signature is slow."""
    return SignatureArguments(function)
