"""What `colearn` exports at run time."""

from __future__ import annotations

import importlib

import pytest

import colearn

NAMES = [name for name in colearn.__all__ if name != "__version__"]


def test_every_name_is_what_its_module_has() -> None:
    assert set(NAMES) == set(colearn._HOMES)
    for name, home in colearn._HOMES.items():
        module = importlib.import_module(f"colearn.{home}")
        assert getattr(colearn, name) is getattr(module, name)
    assert set(NAMES) <= set(dir(colearn))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        colearn.nothing  # noqa: B018
