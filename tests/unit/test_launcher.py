"""Variables of a launcher that fit nothing are one line that names them."""

from __future__ import annotations

import pytest

from colearn.errors import ConfigError
from colearn.text.launcher import check_launcher, on_one_machine, relaunches, world_size

NAMES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
)


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "MASTER_ADDR"])
@pytest.mark.parametrize("text", ["abc", "", " ", "1.5", "-2", "0x1", "1_0", "9" * 5000, "\u0663"])
def test_a_variable_that_is_no_number_is_named(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError) as told:
        check_launcher()
    assert str(told.value).startswith(f"{name}: must be a whole number from ")
    assert str(told.value).endswith("or unset it") and len(str(told.value)) < 200


def test_a_rank_beyond_the_processes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "9")
    with pytest.raises(ConfigError, match=r"^RANK: is 9 among WORLD_SIZE=1 processes"):
        check_launcher()


def test_processes_without_an_address_are_told_which_variable_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "9")
    monkeypatch.setenv("WORLD_SIZE", "10")
    with pytest.raises(ConfigError, match=r"^MASTER_ADDR: missing, although WORLD_SIZE is 10"):
        check_launcher()


def test_a_port_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "70000")
    with pytest.raises(ConfigError, match=r"^MASTER_PORT: 70000 is no port"):
        check_launcher()


def test_what_torchrun_sets_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    given |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    for name, text in (given | {"TORCHELASTIC_RESTART_COUNT": "3"}).items():
        monkeypatch.setenv(name, text)
    check_launcher()
    assert (world_size(), relaunches()) == (2, 3)


def test_without_a_launcher_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "-1")  # how some say that there is none
    check_launcher()
    assert (world_size(), relaunches()) == (1, 0)


@pytest.mark.parametrize(
    ("processes", "here", "together"),
    [(None, None, True), ("2", None, True), ("2", "2", True), ("4", "2", False)],
)
def test_processes_are_on_one_machine_if_all_are_here(
    processes: str | None, here: str | None, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WORLD_SIZE", processes), ("LOCAL_WORLD_SIZE", here)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert on_one_machine() is together
