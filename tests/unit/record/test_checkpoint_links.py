"""Links between a run's checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from colearn.errors import ConfigError
from colearn.programs.files.cache import cache_folder
from colearn.runs.record.checkpoints import Checkpoints
from colearn.runs.record.fields import Progress


@pytest.mark.parametrize(
    "name", ["step-1", "step-2", "step-9", ".step-2.partial", ".step-9.partial"]
)
def test_a_link_among_checkpoints_is_removed_alone(tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "thesis.tex").write_text("mine")
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.folder.mkdir()
    (checkpoints.folder / name).symlink_to(own)
    with checkpoints.writing(Progress(iteration=2), keep=1) as folder:
        (folder / "weights").write_text("w")
    assert [saved.iteration for saved in checkpoints.all()] == [2]
    assert (checkpoints.at(2) / "weights").is_file() and not checkpoints.at(2).is_symlink()
    assert (own / "thesis.tex").read_text() == "mine"


def test_a_file_among_checkpoints_is_removed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    (tmp_path / "step-1").write_text("x")
    with checkpoints.writing(Progress(iteration=2), keep=1):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["step-2"]


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("COLEARN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match="COLEARN_CACHE: this user has no home folder"):
        cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/colearn")
