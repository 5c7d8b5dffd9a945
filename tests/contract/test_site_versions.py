"""The list of versions beside a versioned site."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "_versions.py"


@pytest.fixture(scope="module")
def versions():
    spec = importlib.util.spec_from_file_location("_versions", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_are_ordered_by_number_and_a_release_follows_its_candidates(
    versions, tmp_path: Path
) -> None:
    for name in ("0.9.0", "0.10.0rc1", "0.10.0", "0.2.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "unfinished").mkdir()
    assert versions.write_versions(tmp_path) == ["0.10.0", "0.10.0rc1", "0.9.0", "0.2.0"]
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert listed[0] == {"version": "0.10.0", "title": "0.10.0", "aliases": []}
    assert 'url=0.10.0/"' in (tmp_path / "index.html").read_text()


def test_only_a_site_in_the_folder_of_versions_has_a_menu(versions) -> None:
    assert versions.is_versioned(Path("build/versions/0.1.0"))
    assert not versions.is_versioned(Path("build/site"))
