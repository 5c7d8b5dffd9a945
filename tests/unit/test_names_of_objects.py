"""The names that a program's objects have in a config: one object each, and always the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from colearn.contract import Callback
from colearn.entry.python.named import Names
from colearn.registry.given import given


def reward(paid: float) -> Callable[..., list[float]]:
    """A function without an importable name, called `local` as all others are."""

    def local(prompts: Any, completions: Any, **columns: Any) -> list[float]:
        return [paid for _ in completions]

    return local


@dataclass(frozen=True)
class Equal(Callback):
    """Objects of it are equal, and not the same."""


def test_objects_of_one_label_have_names_of_their_own() -> None:
    names = Names()
    functions = [reward(float(n)) for n in range(4)]
    called = [names.reward(function) for function in functions]
    assert len(set(called)) == 4
    assert [names.objects[name] for name in called] == functions
    assert [given(name, "task.reward") for name in called] == functions


def test_an_object_that_is_given_again_keeps_its_name() -> None:
    names = Names()
    first, second = reward(0.0), reward(1.0)
    called = [names.reward(one) for one in (first, second, first, second)]
    assert called[:2] == called[2:] and len(names.objects) == 2


def test_equal_objects_are_still_two() -> None:
    """A callback is read after the run: the program wants its own."""
    names = Names()
    first, second = Equal(), Equal()
    assert first == second
    one, other = names.callback(first), names.callback(second)
    assert one != other
    assert given(one, "run.callbacks") is first and given(other, "run.callbacks") is second


@pytest.mark.parametrize("label", ["two words", "two-words", "two.words", "<lambda>", "", "1", "é"])
def test_labels_that_become_one_identifier_do_not_become_one_object(label: str) -> None:
    names = Names()
    parts = [object(), object(), object()]
    called = [names.add(parts[0], label), names.add(parts[1], "two_words")]
    called.append(names.add(parts[2], label))
    assert len(set(called)) == 3
    assert [names.objects[name] for name in called] == parts
    assert all(name.removeprefix("object:").isidentifier() for name in called)


def test_a_name_that_a_number_made_is_not_given_to_another() -> None:
    """`local_2` may be the label of one object and the second name of another."""
    names = Names()
    parts = [object() for _ in range(4)]
    labels = ("local", "local_2", "local", "local_2")
    called = [names.add(part, label) for part, label in zip(parts, labels, strict=True)]
    assert len(set(called)) == 4
    assert [names.objects[name] for name in called] == parts


def test_a_partial_of_one_function_is_not_the_function_with_other_arguments() -> None:
    names = Names()

    def local(prompts: Any, completions: Any, paid: float = 0.0, **columns: Any) -> list[float]:
        return [paid for _ in completions]

    functions: list[Any] = [local, partial(local, paid=1.0), partial(local, paid=2.0)]
    called = [names.reward(function) for function in functions]
    assert [given(name, "task.reward") for name in called] == functions
    assert [given(name, "task.reward")([], [0])[0] for name in called] == [0.0, 1.0, 2.0]


def test_rows_are_named_by_what_they_hold() -> None:
    names = Names()
    trained, held = [{"prompt": "a"}, {"prompt": "b"}], [{"prompt": "a"}, {"prompt": "c"}]
    one, other = names.rows(trained), names.rows(held)
    assert one != other and names.rows([dict(row) for row in trained]) == one
    assert names.objects[one] == trained and names.objects[other] == held


def test_two_runs_of_one_program_have_their_own_objects() -> None:
    """Both call theirs `local`; a run that goes on later must find its own."""
    first, second = reward(0.0), reward(1.0)
    one, other = Names(), Names()
    called = one.reward(first), other.reward(second)
    assert one.objects[called[0]] is first and other.objects[called[1]] is second
