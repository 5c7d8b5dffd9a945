"""Where an invalid value is: its keys and indices alone, of the kind that the data fit best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from colearn.text.validation import KeyPath, first_fault


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    weight: float = 1.0


class Whole(BaseModel):
    parts: list[Part | str] = []
    rows: dict[str, str] = {}


def _short(text: str) -> str:
    if len(text) > 3:
        raise ValueError("longer than 3")
    return text


def place(hint: Any, given: Any) -> tuple[KeyPath, list[str]]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(hint).validate_python(given)
    path, faults = first_fault(caught.value, given)
    return path, [fault["type"] for fault in faults]


@pytest.mark.parametrize(
    ("hint", "given", "path", "types"),
    [
        # without a union the location is the place
        (tuple[str, ...], ["a", 1], (1,), ["string_type"]),
        (Whole, {"rows": {"a": 1}}, ("rows", "a"), ["string_type"]),
        # of the value itself, every kind that it might be is told
        (str | list[str], 7, (), ["string_type", "list_type"]),
        (str | Mapping[str, str], [1, [2]], (), ["string_type", "dict_type"]),
        # it is no text, but almost a mapping or a list
        (str | Mapping[str, str], {"ada": [1]}, ("ada",), ["string_type"]),
        (str | list[str], ["a", "b", 3], (2,), ["string_type"]),
        (dict[str, tuple[str, ...]] | tuple[str, ...], {"ada": ["x", 3]}, ("ada", 1), None),
        (dict[str, tuple[str, ...]] | tuple[str, ...], ["x", 3], (1,), None),
        (Whole, {"parts": ["a", {"text": "b", "weight": "c"}]}, ("parts", 1, "weight"), None),
        # a key that is not there has no value, but a place
        (Whole, {"parts": [{"weight": 1}]}, ("parts", 0, "text"), ["missing"]),
        # the unknown key is rather told than the missing one that it may be
        (Part, {"txt": "a"}, ("txt",), ["extra_forbidden"]),
        # a key with the name of a kind is a key, and a kind with the name of a key is none
        (dict[str, str], {"str": 1}, ("str",), ["string_type"]),
        (str | Mapping[str, str], {"str": 5}, ("str",), ["string_type"]),
        (str | list[str], {"str": 5}, (), ["string_type", "list_type"]),
        # what a validator says of a kind is said of the value
        (Annotated[str, AfterValidator(_short)] | int, "long", (), ["value_error", "int_parsing"]),
        # a key's own fault is told of the section that has it
        (dict[str, str], {1: "a"}, (1,), ["string_type"]),
        (dict[str, str], {None: "a"}, (), ["string_type"]),
    ],
)
def test_the_place_of_a_fault_is_made_of_keys_and_indices(
    hint: Any, given: Any, path: KeyPath, types: list[str] | None
) -> None:
    found = place(hint, given)
    assert found[0] == path
    assert types is None or found[1] == types
