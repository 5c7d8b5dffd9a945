"""Objects of a program are known by name and source, wherever a second program has them from."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from colearn.models.sources import first_change
from colearn.registry.code_files import code_files
from colearn.registry.object_code import definition_digest, object_digest, object_files
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


def defined(target: str) -> dict[str, str]:
    return definition_digest(target, code_files(target.partition(":")[0]))


def test_a_function_s_digest_is_that_of_its_definition(module: ModuleType) -> None:
    assert object_digest(module.paid).keys() == {"paid"}
    assert object_digest(module.paid) == defined("first_script:paid")
    assert object_digest(module.Purse()) == defined("first_script:Purse")
    assert object_digest(module.Purse) != object_digest(module.paid)


def test_a_comment_elsewhere_does_not_change_a_definition(
    module: ModuleType, tmp_path: Path
) -> None:
    before = defined("first_script:paid")
    (tmp_path / "first_script.py").write_text(f"# a note\n{CODE}")
    assert defined("first_script:paid") == before
    (tmp_path / "first_script.py").write_text(CODE.replace("0.5", "0.7"))
    assert defined("first_script:paid") != before


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


@pytest.mark.parametrize(
    "given",
    ["partial(first_script.paid, worth=1)", "first_script.Purse()", "first_script.Purse().worth"],
)
def test_an_object_s_files_are_those_of_its_module(
    module: ModuleType, tmp_path: Path, given: str
) -> None:
    (tmp_path / "first_script.py").write_text(f"from second import WORTH\n{CODE}")
    (tmp_path / "second.py").write_text("WORTH = 1.0\n")
    value = eval(given, {"first_script": module, "partial": partial})
    assert object_files(value).keys() == {"first_script.py", "second.py"}


def test_the_arguments_of_a_partial_function_are_known(module: ModuleType) -> None:
    one, two = (object_digest(partial(module.paid, worth=worth)) for worth in (1, 2))
    assert one["paid"] == two["paid"] and first_change(one, two) == "arguments"


def made(scale: float) -> Any:
    def paid(completions: Any, **_: Any) -> Any:
        return [scale for _ in completions]

    return paid


def defaulted(scale: float) -> Any:
    def paid(completions: Any, worth: float = scale, *, tax: float = scale, **_: Any) -> Any:
        return [worth - tax for _ in completions]

    return paid


@dataclass
class Scale:
    scale: float


class Paid:
    def __init__(self, scale: Any) -> None:
        self._scale, self.calls = scale, 0

    def __call__(self, completions: Any, **_: Any) -> Any:
        self.calls += 1
        return [self._scale for _ in completions]


@pytest.mark.parametrize(
    "make",
    [
        made,
        defaulted,
        Paid,
        Scale,
        lambda scale: Paid({"first": scale}),
        lambda scale: Paid(Scale(scale)),
        lambda scale: Paid(Path(f"{scale}.json")),
        lambda scale: Paid(scale).__call__,
        lambda scale: partial(Paid(scale), worth=1),
    ],
)
def test_the_values_with_which_an_object_was_made_are_known(make: Any) -> None:
    assert first_change(object_digest(make(2.0)), object_digest(make(3.0))) == "arguments"
    assert object_digest(make(2.0)) == object_digest(make(2.0))


def test_what_an_object_counts_may_change() -> None:
    paid, calls = Paid(2.0), list[int]()

    def counted(completions: Any, **_: Any) -> Any:
        calls.append(1)
        return paid(completions)

    before = object_digest(counted)
    counted(["a"])
    assert object_digest(counted) == before and calls == [paid.calls]


SCRIPT = """
from functools import partial
from pathlib import Path
import kit
import unused
SEEDS = [0, 1]
WORTH = kit.ONE
def scored(text):
    return WORTH + len(Path(__file__).with_name("prices.json").read_text())
def paid(completions, share=1, **_):
    return [share * scored(text) for text in completions]
if __name__ == "__main__":
    import json
    from colearn.registry.object_code import object_digest, object_files
    given = partial(paid, share=2)
    files = {name: file.read_text() for name, file in object_files(given).items()}
    print(json.dumps(files | object_digest(given)))
"""


def known(folder: Path, **edited: str) -> dict[str, str]:
    """What is known of the object that a program gives, in a process of its own."""
    files = {"program": SCRIPT, "kit": "ONE = 1.0\n", "unused": "ONE = 1.0\n"} | edited
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "prices.json").write_text("[1]")
    command = [sys.executable, str(folder / "program.py")]
    digests: dict[str, str] = json.loads(subprocess.check_output(command, cwd=folder))
    return digests


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return known(tmp_path_factory.mktemp("before"))


@pytest.mark.parametrize(
    ("edited", "change"),
    [
        ({"kit": "ONE = 2.0\n"}, "kit.py"),
        ({"program": SCRIPT.replace("WORTH + len", "WORTH * len")}, "scored"),
        ({"program": SCRIPT.replace("kit.ONE", "kit.ONE + 1")}, "WORTH"),
        ({"program": SCRIPT.replace("share=2", "share=3")}, "arguments"),
        ({"program": SCRIPT.replace("import kit", "import unused as kit")}, "kit"),
        ({"program": SCRIPT.replace("[0, 1]", "[0, 1, 2]"), "unused": ""}, None),
    ],
)
def test_what_an_object_of_a_script_uses_is_known(
    tmp_path: Path, before: dict[str, str], edited: dict[str, str], change: str | None
) -> None:
    assert {"kit.py", "prices.json"} <= before.keys()
    assert first_change(before, known(tmp_path, **edited)) == change


def test_a_lambda_is_known_by_its_source(tmp_path: Path) -> None:
    program = SCRIPT.replace(
        "partial(paid, share=2)", "lambda texts: [scored(text) for text in texts]"
    )
    first = known(tmp_path, program=program)
    changed = known(tmp_path, program=program.replace("[scored(text)", "[-scored(text)"))
    assert first_change(first, changed) == "<lambda>" and "scored" in first


CELLS = """
import linecache, sys
del __file__
for number, cell in enumerate(open(sys.argv[1]).read().split("# cell"), start=1):
    name = f"<cell {number}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    exec(compile(cell, name, "exec"))
"""
CELL = """
import json
from pathlib import Path
from kit import ONE as WORTH, scored
BONUS = 0.5
CALLS = []
class Base:
    tax = 0.1
# cell
def helper(text):
    return scored(text) + BONUS + share(1)
share = lambda number: number / 2
class Paid(Base):
    def __call__(self, completions, **_):
        CALLS.append(1)
        return [helper(text) for text in completions]
# cell
from colearn.registry.object_code import object_digest, object_files
if len(sys.argv) > 2:
    Paid()(["a"])
print(json.dumps(dict.fromkeys(object_files(Paid()), "") | object_digest(Paid())))
"""


def cells(folder: Path, *arguments: str, old: str = "", new: str = "") -> dict[str, str]:
    """What is known of the object of a notebook: code without a file."""
    (folder / "kit.py").write_text("ONE = 1.0\ndef scored(text): return ONE\n")
    (folder / "cells.txt").write_text(CELL.replace(old, new))
    (folder / "kernel.py").write_text(CELLS)
    command = [sys.executable, "kernel.py", "cells.txt", *arguments]
    digests: dict[str, str] = json.loads(subprocess.check_output(command, cwd=folder))
    return digests


def test_what_an_object_of_a_notebook_uses_in_other_cells_is_known(tmp_path: Path) -> None:
    before = cells(tmp_path)
    assert before["kit.py"] == "" and "CALLS" not in before
    for old, new, change in (
        ("scored(text) + BONUS", "scored(text) - BONUS", "helper"),
        ("BONUS = 0.5", "BONUS = 0.6", "BONUS"),
        ("number / 2", "number / 3", "share"),
        ("tax = 0.1", "tax = 0.2", "Base"),
        ("[helper(text) for", "[-helper(text) for", "Paid"),
    ):
        assert first_change(before, cells(tmp_path, old=old, new=new)) == change
    assert cells(tmp_path, "called") == before
