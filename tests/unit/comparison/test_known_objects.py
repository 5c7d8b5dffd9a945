"""Objects of a program are known by name and source, wherever a second program has them from."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from colearn.models.sources import first_change
from colearn.registry.code_files import definition_digest, object_digest
from colearn.runs.record.writer import _same_objects

CODE = """
def paid(completions, **_):
    return [0.5 for _ in completions]


class Purse:
    def worth(self):
        return 1.0
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "first_script.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("first_script")
    sys.modules.pop("first_script", None)


def test_a_function_s_digest_is_that_of_its_definition(module: ModuleType) -> None:
    assert object_digest(module.paid).keys() == {"paid"}
    assert object_digest(module.paid) == definition_digest("first_script", "paid")
    assert object_digest(module.Purse()) == definition_digest("first_script", "Purse")
    assert object_digest(module.Purse) != object_digest(module.paid)


def test_a_comment_elsewhere_does_not_change_a_definition(
    module: ModuleType, tmp_path: Path
) -> None:
    before = definition_digest("first_script", "paid")
    (tmp_path / "first_script.py").write_text(f"# a note\n{CODE}")
    assert definition_digest("first_script", "paid") == before
    (tmp_path / "first_script.py").write_text(CODE.replace("0.5", "0.7"))
    assert definition_digest("first_script", "paid") != before


def test_what_has_no_source_has_no_digest() -> None:
    assert object_digest(len) == object_digest([1]) == {}


def test_an_object_and_a_module_s_function_of_one_name_are_compared_by_source() -> None:
    recorded = {"task": {"reward": ["object:paid", "mine:other"]}, "seed": 1}
    current = {"task": {"reward": ["first_script:paid", "mine:changed"]}, "seed": 1}
    assert _same_objects(recorded, current) == {
        "task": {"reward": ["first_script:paid", "mine:other"]},
        "seed": 1,
    }
    given, imported = {"paid": "1"}, {"first_script.py": "a", "paid": "1"}
    assert first_change(given, imported) is None
    assert first_change(given, imported | {"paid": "2"}) == "paid"


def test_functions_of_two_modules_are_not_taken_for_one() -> None:
    assert _same_objects({"reward": "a:paid"}, {"reward": "b:paid"}) == {"reward": "a:paid"}
