"""What a config may leave out, and the words that a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from colearn.config import build_algorithm, load_config
from colearn.errors import ConfigError
from colearn.methods.credit.mixed import Mixed
from colearn.models.missing_folder import refuse_missing_folder
from colearn.rollout.shapes import KaryTree
from colearn.runs.comparison.plan import make_plan


def test_a_part_is_named_alone() -> None:
    config = load_config("quickstart", {"algorithm": {"name": "magrpo", "credit": "mixed"}})
    assert build_algorithm(config).credit == Mixed()


def test_a_part_that_is_named_alone_is_one_of_a_comparison() -> None:
    config = load_config("quickstart", {"compare.algorithms": {"magrpo": {}}, "compare.seeds": [0]})
    entries = {"magrpo": {"algorithm.credit": "mixed"}}
    changed = load_config(config.model_dump(mode="json"), {"compare.algorithms": entries})
    assert make_plan(changed).resolved["magrpo"].algorithm.credit == Mixed()


def test_an_algorithm_is_named_alone_and_its_parts_can_still_be_set() -> None:
    plain = {"task": "str_build", "models": {"*": {"path": "embedded"}}, "algorithm": "magrpo"}
    config = load_config(plain, ["algorithm.rollout.k = 3"])
    assert config.algorithm.name == "magrpo"
    assert build_algorithm(config).checked_parts().rollout == KaryTree(3)


def test_a_named_model_without_a_path_is_told_that_it_inherits_nothing() -> None:
    given = {"task": "str_build", "models": {"*": {"path": "embedded"}}}
    line = (
        r"^models\.builder_1\.path: missing; a model that is named has settings of its own, "
        r"without those of models\.\*$"
    )
    with pytest.raises(ConfigError, match=line):
        load_config(given, ["models.builder_1.learning_rate=1e-4"])


def test_steps_are_environment_steps() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'environment_steps'\?$"):
        load_config("quickstart", {"train.steps": 100})


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("models/mdoel", "no folder models/mdoel; did you mean 'models/model'?"),
        ("mdoels", "no folder mdoels; did you mean 'models'?"),
        ("./other", "no folder ./other; give a model's folder or hub name"),
        ("a/b/c", "no folder a/b/c; give a model's folder or hub name"),
    ],
)
def test_a_misspelt_folder_is_not_looked_up_on_a_hub(
    path: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as told:
        refuse_missing_folder(path, "models.*.path")
    assert str(told.value) == f"models.*.path: {line}"


@pytest.mark.parametrize("name", ["gpt2", "Qwen/Qwen3-0.6B", "models/model"])
def test_hub_names_and_folders_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    refuse_missing_folder(name, "models.*.path")


def test_before_a_hub_is_asked_it_is_said_once_that_there_is_no_such_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: False)
    for _ in range(2):
        refuse_missing_folder("my-modle", "models.*.path")
    assert capsys.readouterr().err == (
        "note: there is no folder my-modle; asks the hub for a model of this name\n"
    )


def test_without_a_hub_nothing_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.is_offline_mode", lambda: True)
    refuse_missing_folder("another-modle", "models.*.path")
    assert capsys.readouterr().err == ""
