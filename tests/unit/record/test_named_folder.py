"""An empty name of a folder is not the current folder, in Python either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import colearn
from colearn.config import load_config
from colearn.entry.python.place import run_folder
from colearn.errors import ConfigError
from colearn.runs.record import open_run
from colearn.runs.record.place import named_folder


@pytest.mark.parametrize("name", ["", " ", "\t\n"])
@pytest.mark.parametrize(
    "use",
    [
        named_folder,
        open_run,
        lambda name: run_folder(load_config("quickstart"), name, resume=False),
        lambda name: colearn.compare(load_config("quickstart"), name),
    ],
    ids=["a folder", "a run", "a new run", "a comparison"],
)
def test_an_empty_name_is_one_line(use: Callable[[str], Any], name: str) -> None:
    with pytest.raises(ConfigError, match=r"^\S+: is empty; name a folder, or '\.' for"):
        use(name)


def test_a_name_is_a_path() -> None:
    assert named_folder("runs/first").parts == ("runs", "first")
    assert str(named_folder(".")) == "."
