"""Checksums, and folders that are whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors import SafetensorError

from colearn.deploy.export import verify
from colearn.deploy.export.staging import staged
from colearn.errors import ConfigError
from colearn.runs.record.checksums import write_checksums


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.json").write_text("{}")
    (folder / "weights 1.safetensors").write_bytes(b"abc")
    write_checksums(folder)
    return folder


def test_sums_are_sha_256_in_the_format_of_sha256sum(agent: Path) -> None:
    empty_object = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (agent / "SHA256SUMS").read_text() == (
        f"{empty_object}  agent.json\n{abc}  weights 1.safetensors\n"
    )


def test_a_whole_folder_is_verified(agent: Path) -> None:
    (agent / ".gitattributes").write_text("a hub adds this")
    verify(agent)


def test_one_changed_byte_names_the_file(agent: Path) -> None:
    (agent / "weights 1.safetensors").write_bytes(b"abd")
    with pytest.raises(ConfigError, match=r"weights 1\.safetensors: damaged .* export the agent"):
        verify(agent)


def test_a_missing_file_is_named(agent: Path) -> None:
    (agent / "agent.json").unlink()
    with pytest.raises(ConfigError, match=r"agent\.json: missing; copy or export"):
        verify(agent)


def test_a_file_that_was_not_exported_is_named(agent: Path) -> None:
    (agent / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"adapter_model\.bin: not in SHA256SUMS.* remove it"):
        verify(agent)


def test_a_folder_without_sums_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SHA256SUMS: no such file"):
        verify(tmp_path)


@pytest.mark.parametrize("line", ["nonsense", "0" * 64 + "  ../outside", "0" * 64 + "  /etc/hosts"])
def test_a_line_that_names_no_file_of_the_folder_is_an_error(agent: Path, line: str) -> None:
    with (agent / "SHA256SUMS").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ConfigError, match=r"SHA256SUMS:3: not a line of sha256sum"):
        verify(agent)


def write(folder: Path, text: str = "new") -> None:
    (folder / "agent.json").write_text(text)


def test_folders_appear_when_the_block_ends(tmp_path: Path) -> None:
    to = tmp_path / "a" / "b"
    with staged(to, ["ada", "ben"], overwrite=False) as folders:
        for folder in folders.values():
            write(folder)
        assert not (to / "ada").exists()
    assert sorted(path.name for path in to.iterdir()) == ["ada", "ben"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError),
        staged(tmp_path / "a" / "b", ["ada", "ben"], overwrite=False) as folders,
    ):
        write(folders["ada"])
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    write(tmp_path / "ada", "old")
    with (
        pytest.raises(RuntimeError),
        staged(tmp_path, ["ada"], overwrite=True) as folders,
    ):
        write(folders["ada"])
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["ada"]
    assert (tmp_path / "ada" / "agent.json").read_text() == "old"


def test_an_agent_that_is_there_is_an_error_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "ben").mkdir()
    with (
        pytest.raises(ConfigError, match=r"ben exists; name another folder or give --overwrite"),
        staged(tmp_path, ["ada", "ben"], overwrite=False),
    ):
        pytest.fail("the block runs")
    assert [path.name for path in tmp_path.iterdir()] == ["ben"]


def test_an_overwritten_agent_keeps_no_old_file(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    write(tmp_path / "ada", "old")
    (tmp_path / "ada" / "model-2.safetensors").touch()
    with staged(tmp_path, ["ada"], overwrite=True) as folders:
        write(folders["ada"])
    assert [path.name for path in tmp_path.iterdir()] == ["ada"]
    assert [path.name for path in (tmp_path / "ada").iterdir()] == ["agent.json"]


def test_a_folder_that_is_no_agent_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "thesis.tex").touch()
    with (
        pytest.raises(ConfigError, match="no exported agent and is not overwritten"),
        staged(tmp_path, ["ada"], overwrite=True),
    ):
        pytest.fail("the block runs")
    assert (tmp_path / "ada" / "thesis.tex").is_file()


@pytest.mark.parametrize("name", ["../ada", "a/b", "..", ".ada", ""])
def test_a_name_that_is_no_folder_s_is_an_error(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(ConfigError, match="no name for a folder"),
        staged(tmp_path, [name], overwrite=False),
    ):
        pytest.fail("the block runs")


def test_a_target_under_a_file_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match="name a folder that can be written"),
        staged(tmp_path / "file", ["ada"], overwrite=False),
    ):
        pytest.fail("the block runs")


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        OSError(30, "Read-only file system"),
        SafetensorError("serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_disk_that_takes_no_more_is_one_line_and_leaves_nothing(
    tmp_path: Path, error: Exception
) -> None:
    line = r"--to .*(No space|Read-only).*; name a folder that can be written"
    with pytest.raises(ConfigError, match=line), staged(tmp_path, ["ada"], overwrite=False):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_of_the_model_is_not_blamed_on_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no file"), staged(tmp_path, ["ada"], overwrite=False):
        raise OSError("no file named model.safetensors")
