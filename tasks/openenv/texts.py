"""Converts actions and observations of an OpenEnv server to and from text, by the server's JSON
schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colearn.errors import ConfigError, nearest
from colearn.text.json_value import read_json

_GENERAL = ("metadata", "reward", "done")
"""Field names of OpenEnv's base classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The format of an action.

    field: the single field that an answer fills; None if an answer is a JSON object.
    """

    schema: Mapping[str, Any]
    field: str | None

    @property
    def system(self) -> str | None:
        """The system prompt that asks for a JSON object; None for an action of one field."""
        if self.field is not None:
            return None
        schema_text = json.dumps(self.schema, ensure_ascii=False)
        return f"Answer with a JSON object of this schema, and nothing else:\n{schema_text}"


def action_form(schema: Mapping[str, Any], field: str | None) -> Form:
    """Returns the format of a server's actions: `field`, or the only field of the schema, or a JSON
    object.

    Errors: ConfigError for a field that the actions do not have.
    """
    fields = {n: p for n, p in schema.get("properties", {}).items() if n not in _GENERAL}
    if field is not None and field not in fields:
        raise ConfigError(f"task.action: actions have no field '{field}'; {nearest(field, fields)}")
    only = next(iter(fields)) if len(fields) == 1 else None
    needed = [name for name in schema.get("required", ()) if name in fields]
    return Form(
        schema={"type": "object", "properties": fields, "required": needed}, field=field or only
    )


def read_action(text: str, form: Form) -> Mapping[str, Any]:
    """The action in an answer. A text field takes the answer unchanged; any other field takes the
    answer parsed as JSON.

    Errors: ValueError with the reason, which the agent reads.
    """
    if form.field is not None:
        kind = form.schema["properties"][form.field].get("type")
        return {form.field: text if kind in ("string", None) else _json(text)}
    action = _json(text)
    if not isinstance(action, dict):
        raise ValueError("the answer is no JSON object")
    return action


def write_observation(observation: Mapping[str, Any], field: str | None) -> str:
    """The text of an observation: `field`, or the observation's only field, or all fields as JSON.

    Errors: ConfigError for a field that the observations do not have.
    """
    fields = {name: value for name, value in observation.items() if name not in _GENERAL}
    if field is not None and field not in fields:
        known = nearest(field, fields)
        raise ConfigError(f"task.observation: observations have no field '{field}'; {known}")
    value = fields[field] if field is not None else fields
    if field is None and len(fields) == 1:
        [value] = fields.values()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise ValueError(f"the answer {error}") from None
