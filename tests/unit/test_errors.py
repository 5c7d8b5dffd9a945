"""Optional packages and the errors that name them."""

from __future__ import annotations

import math
import pickle
import sys
from pathlib import Path

import pytest

from colearn.errors import MissingExtra, reason_of, required


def test_an_installed_package_is_imported() -> None:
    assert required("math", "tasks") is math


def test_a_missing_package_is_named_as_pip_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lost_package", None)
    with pytest.raises(MissingExtra) as raised:
        required("lost_package.part", "gyms", package="lost-package")
    assert str(raised.value) == ("lost-package is not installed: pip install 'colearn-llm[gyms]'")


def test_a_package_that_lacks_another_one_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import not_there_either\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_either"):
        required("half_there", "gyms")


def test_a_missing_extra_in_another_process_names_the_same_remedy() -> None:
    error = MissingExtra("bitsandbytes", "quantized")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_long_reason_ends_after_a_whole_word() -> None:
    address = "https://hub.example/" + "a" * 60
    assert reason_of(ValueError("x" * 120 + f" not at {address} or here")) == (
        "x" * 120 + " not at ..."
    )
    assert reason_of(ValueError("x" * 900)) == "x" * 200 + " ..."
    assert reason_of(ValueError(f"not at {address}")) == f"not at {address}"
