"""Arguments that a JSON schema describes, such as the arguments of an MCP server's tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colearn.errors import ConfigError, reason_of, required
from colearn.text.plain_data import plain_data
from colearn.text.validation import first_surrogate

_OPEN = frozenset(
    {
        *("additionalProperties", "patternProperties", "unevaluatedProperties", "$ref"),
        *("allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    }
)
"""Keywords with which a schema itself decides about names outside of `properties`."""


class SchemaArguments:
    """The arguments of a tool with a JSON schema: exactly the given names and values.

    Errors: ConfigError if the schema is not a valid JSON schema; MissingExtra without the extra
    `mcp`.
    """

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        validators: Any = required("jsonschema", "mcp").validators
        registry = required("referencing", "mcp").Registry()  # fetches no schema from an address
        self.schema = dict(schema)
        kind = validators.validator_for(self.schema, validators.Draft202012Validator)
        try:
            kind.check_schema(self.schema, kind.FORMAT_CHECKER)
        except required("jsonschema", "mcp").SchemaError as error:
            raise ConfigError(
                f"tools: the arguments of '{tool}' have no valid JSON schema "
                f"({reason_of(error).partition(' Failed validating')[0]}); correct it in the server"
            ) from None
        self._validator = kind(self.schema, registry=registry)
        self._unresolvable = required("referencing.exceptions", "mcp").Unresolvable
        properties = self.schema.get("properties", {})
        needed = self.schema.get("required", ())
        self._by_place = sorted(properties, key=lambda name: name not in needed)
        self._closed = "properties" in self.schema and not _OPEN & self.schema.keys()

    def bind(self, args: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Assigns positional values to the required and then the optional properties, and returns
        all given values by name, as JSON's types.

        Errors: TypeError and ValueError for arguments that do not fit the schema or JSON.
        """
        if len(args) > len(self._by_place):
            raise TypeError("too many positional arguments")
        values = dict(zip(self._by_place, args, strict=False))
        for name, value in arguments.items():
            if name in values:
                raise TypeError(f"multiple values for argument {name!r}")
            values[name] = value
        return self.read({name: plain_data(value) for name, value in values.items()})

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values unchanged.

        Errors: TypeError and ValueError for values that do not fit the schema or JSON.
        """
        values = dict(values)
        for name in values:
            if self._closed and name not in self._by_place:
                raise TypeError(f"got an unexpected keyword argument {name!r}")
        if first_surrogate(values) is not None:
            raise ValueError("the arguments have half of a surrogate pair, which is no text")
        if not _finite(values):
            raise ValueError("the arguments have an infinity or NaN, which JSON does not have")
        try:
            fault = next(iter(self._validator.iter_errors(values)), None)
        except self._unresolvable as error:
            raise ValueError(f"the tool's schema is incomplete: {reason_of(error)}") from None
        if fault is not None:
            where = ".".join(map(str, fault.absolute_path))
            raise ValueError(f"{where}: {fault.message}" if where else fault.message)
        return values


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or abs(value) < float("inf")
