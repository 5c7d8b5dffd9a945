"""Settings and metrics under their earlier names."""

from __future__ import annotations

import json

import pytest
import yaml

from colearn.config import build_algorithm, load_config, load_suite
from colearn.config.renamed import METRICS, SETTINGS
from colearn.errors import ConfigError
from colearn.record import RunFolder, SuiteFolder
from colearn.record.fields import Line

CONFIG = {"task": {"name": "str_build"}, "models": {"*": {"path": "embedded"}}}
LINE = {
    "kind": "update",
    "iteration": 1,
    "environment_steps": 8,
    "generated_tokens": 20,
    "updates": 1,
    "wall_seconds": 0.5,
}


@pytest.mark.parametrize(
    ("algorithm", "section", "old"),
    [
        ("magrpo", "loss", "anneal"),
        ("magrpo", "loss", "old"),
        ("magrpo", "loss", "refresh"),
        ("collm_cc", "advantage", "anneal"),
        ("collm_cc", "advantage", "trace"),
        ("collm_cc", "value_loss", "anneal"),
        ("mhgpo", "advantage", "singles"),
    ],
)
@pytest.mark.parametrize("dotted", [True, False])
def test_an_earlier_name_of_a_setting_is_an_error_that_says_the_new_one(
    algorithm, section, old, dotted
):
    key = f"algorithm.{section}.{old}"
    nested = {"algorithm": {"name": algorithm, section: {old: 1}}}
    given = (CONFIG, [f"algorithm.name={algorithm}", f"{key}=1"]) if dotted else (CONFIG | nested,)
    with pytest.raises(ConfigError, match=f"{key}: unknown setting; it is {SETTINGS[old]} now"):
        build_algorithm(load_config(*given))


def test_an_earlier_name_of_a_part_is_an_error_that_says_the_new_one():
    settings = ["algorithm.name=collm_cc", "algorithm.advantage.name=bootstrap"]
    with pytest.raises(ConfigError, match=r"^algorithm\.advantage\.name: 'bootstrap' is gae now$"):
        build_algorithm(load_config(CONFIG, settings))


def test_the_threads_of_a_comparison_are_those_of_every_run():
    with pytest.raises(ConfigError, match=r"^compare\.threads: unknown key; it is run\.threads"):
        load_config(CONFIG, ["compare.threads=2"])
    with pytest.raises(ConfigError, match=r"^threads: unknown key; it is each\.run\.threads now"):
        load_suite("mhgpo", ["threads=2"])


def test_a_run_recorded_with_the_threads_of_its_comparison_is_read(tmp_path):
    recorded = load_config(CONFIG).model_dump(mode="json")
    del recorded["run"]["threads"]
    recorded["compare"]["threads"] = 3
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recorded))
    config = RunFolder(tmp_path).config(["run.seed=4"])
    assert (config.run.threads, config.run.seed) == (3, 4)


@pytest.mark.parametrize(
    ("critic", "loss"),
    [
        ({"share": "actor", "learning_rate": 1e-2, "lora": {}}, {"expectile": 0.9}),
        ({"path": "x", "head": "ridge"}, {"clip": 0.2, "expectile": 0.5}),
    ],
)
def test_a_run_recorded_with_settings_that_had_no_effect_is_read_without_them(
    critic, loss, tmp_path
):
    algorithm = {"name": "collm_dc", "value_loss": loss}
    recorded = {**CONFIG, "algorithm": algorithm, "critic": critic}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(recorded))
    config = RunFolder(tmp_path).config()
    assert (config.critic.learning_rate, config.critic.lora) == (3e-6, None)
    assert config.critic.model_dump(exclude_unset=True).keys() <= {*critic, "baseline"}
    kept = {key: value for key, value in loss.items() if key != "clip"}
    assert config.algorithm.settings == {"value_loss": kept}


@pytest.mark.parametrize(("recorded", "each"), [(3, {"run": {"threads": 3}}), (None, {})])
def test_a_suite_recorded_with_threads_is_read(tmp_path, recorded, each):
    folder = SuiteFolder(tmp_path)
    folder.write(load_suite("mhgpo"), None)
    record = json.loads((tmp_path / "suite.json").read_text())
    record["settings"]["threads"] = recorded
    (tmp_path / "suite.json").write_text(json.dumps(record))
    assert folder.settings().each == each


@pytest.mark.parametrize(("old", "new"), METRICS.items())
def test_a_recorded_metric_is_read_under_its_present_name(old, new):
    metrics = {f"ada/{old}": 0.5, old: 0.25, "return": 1.0}
    line = Line.model_validate({**LINE, "metrics": metrics})
    assert line.metrics == {f"ada/{new}": 0.5, new: 0.25, "return": 1.0}


def test_a_task_s_own_metric_keeps_its_name_beside_the_present_one():
    metrics = {"truncated": 0.0, "overlong": 3.0}
    assert Line.model_validate({**LINE, "metrics": metrics}).metrics == metrics
