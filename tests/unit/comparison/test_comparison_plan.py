"""Planning a comparison: algorithms x seeds, each with a resolved config of its own."""

from __future__ import annotations

import fabricated_runs as fabricated
import pytest
from fabricated_config import comparison_config as config
from fabricated_config import register

from colearn.config import load_config
from colearn.errors import CheckpointError, ConfigError
from colearn.runs.comparison.claim import check_claim, claim
from colearn.runs.comparison.plan import config_of, make_plan
from colearn.runs.record import RunRecord


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def test_plan_is_the_product_seed_by_seed():
    plan = make_plan(config(seeds=(3, 4)))
    assert [r.name for r in plan.runs] == [
        "collm_cc-s3",
        "magrpo-s3",
        "collm_cc-s4",
        "magrpo-s4",
    ]
    assert [r.config.run.seed for r in plan.runs] == [3, 3, 4, 4]
    assert plan.runs[1].config.algorithm.name == "magrpo"
    assert plan.runs[1].config.critic is not None
    assert plan.runs[1].config.compare.algorithms == {}


def test_plan_without_algorithms_is_the_configs_own():
    plan = make_plan(load_config(fabricated.CONFIG))
    assert [r.name for r in plan.runs] == ["collm_cc-s0", "collm_cc-s1", "collm_cc-s2"]


def test_overrides_hold_for_their_algorithm_alone():
    plan = make_plan(
        config(seeds=(0,), collm_cc={}, magrpo={"algorithm.samples": 4, "train.episodes": 1})
    )
    actor, group = (r.config for r in plan.runs)
    assert group.algorithm.settings == {"discount": 0.9, "samples": 4}
    assert actor.algorithm.settings == {"discount": 0.9}
    assert (actor.train.episodes, group.train.episodes) == (4, 1)


def test_two_variants_of_one_algorithm_are_two_labels():
    variant = {"algorithm.name": "magrpo", "algorithm.samples": 8}
    plan = make_plan(config(seeds=(0,), magrpo={}, magrpo_k8=variant))
    assert [r.algorithm for r in plan.runs] == ["magrpo", "magrpo_k8"]
    assert {r.config.algorithm.name for r in plan.runs} == {"magrpo"}


def test_settings_that_an_algorithm_lacks_stay_with_those_that_have_them():
    section = {"algorithms": {"collm_cc": {}, "magrpo": {}}, "seeds": [0]}
    algorithm = {"name": "collm_cc", "critic_lag": 3}
    data = {**fabricated.CONFIG, "algorithm": algorithm, "compare": section}
    actor, group = (r.config for r in make_plan(load_config(data)).runs)
    assert actor.algorithm.settings == {"critic_lag": 3}
    assert group.algorithm.settings == {}
    algorithm["critic_lagg"] = 1
    with pytest.raises(ConfigError, match=r"algorithm\.critic_lagg.*'critic_lag'"):
        make_plan(load_config(data))


@pytest.mark.parametrize("labels", [{"collm_cc": {}, "magrpo": {}}, {}], ids=["named", "own"])
def test_a_setting_of_an_algorithm_that_is_left_out_is_no_mistake(labels):
    algorithm = {"name": "collm_cc", "critic_lag": 3, "advantage": {"lam": 0.9}}
    data = {**fabricated.CONFIG, "algorithm": algorithm, "compare": {"algorithms": labels}}
    plan = make_plan(load_config(data), ["magrpo"])
    assert plan.algorithms == ("magrpo",)
    assert plan.runs[0].config.algorithm.settings == {}
    algorithm["critic_lagg"] = 1
    with pytest.raises(ConfigError, match=r"algorithm\.critic_lagg.*'critic_lag'"):
        make_plan(load_config(data), ["magrpo"])


def test_the_chosen_algorithms_keep_their_overrides_and_the_order_in_which_they_are_named():
    compared = config(seeds=(0,), collm_cc={}, magrpo={"algorithm.samples": 4})
    plan = make_plan(compared, ["magrpo", "collm_cc", "magrpo"])
    assert plan.algorithms == ("magrpo", "collm_cc")
    assert plan.runs[0].config.algorithm.settings["samples"] == 4
    with pytest.raises(ConfigError, match="algorithms: name one or more"):
        make_plan(compared, [])


def planned(algorithm, **algorithms):
    """By label, the algorithm's settings in its run."""
    section = {"algorithms": algorithms or {"collm_cc": {}, "magrpo": {}}, "seeds": [0]}
    data = {**fabricated.CONFIG, "algorithm": algorithm, "compare": section}
    return {r.algorithm: r.config.algorithm.settings for r in make_plan(load_config(data)).runs}


def test_a_parts_settings_stay_with_the_algorithms_whose_part_has_them():
    algorithm = {
        "name": "collm_cc",
        "advantage": {"clip": 0.2, "lam": 0.9, "equal_turns": True},
        "critic": {"global_info": False},
    }
    # both advantages have a clip, the bootstrap alone a trace, the group's alone equal turns
    assert planned(algorithm) == {
        "collm_cc": {
            "advantage": {"clip": 0.2, "lam": 0.9},
            "critic": {"global_info": False},
        },
        "magrpo": {"advantage": {"clip": 0.2, "equal_turns": True}},
    }


def test_a_parts_settings_are_those_of_the_part_that_an_algorithm_puts_there():
    algorithm = {"name": "collm_cc", "advantage": {"clip": 0.2, "lam": 0.9}}
    other = {"algorithm.advantage.name": "q_value", "algorithm.critic.value": "q"}
    settings = planned(algorithm, collm_cc={}, q={"algorithm.name": "collm_cc", **other})
    assert settings["collm_cc"] == {"advantage": {"clip": 0.2, "lam": 0.9}}
    assert settings["q"] == {
        "advantage": {"clip": 0.2, "name": "q_value"},
        "critic": {"value": "q"},
    }
    algorithm["advantage"] = {"name": "raw_return", "clip": 0.2}
    assert planned(algorithm, magrpo={})["magrpo"] == {
        "advantage": {"name": "raw_return", "clip": 0.2}
    }


@pytest.mark.parametrize(
    ("advantage", "message"),
    [
        ({"clp": 0.2}, r"algorithm\.advantage\.clp: unknown setting.*'clip'"),
        ({"name": "raw_retrun"}, r"algorithm\.advantage\.name: unknown.*'raw_return'"),
    ],
)
def test_a_parts_setting_that_no_algorithm_has_is_one_line(advantage, message):
    with pytest.raises(ConfigError, match=message) as caught:
        planned({"name": "collm_cc", "advantage": advantage})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ({"nope": {}}, "^algorithm: unknown algorithm 'nope'"),
        ({"magrpo": {"algorithm.advantage.name": ["clip"]}}, r"advantage\.name: unknown"),
        ({"magrpo": {"algorithm.advantage": {"name": {"clip": 1}}}}, r"advantage\.name: unknown"),
        ({"magrpo": {"run.seed": 3}}, r"magrpo: run\.seed cannot differ"),
        ({"magrpo": {"train.epoch": 3}}, r"magrpo: train\.epoch: unknown key.*'epochs'"),
        ({"magrpo": {"algorithm.sample": 3}}, r"algorithm\.sample: unknown setting.*'samples'"),
        ({"a/b": {"algorithm.name": "magrpo"}}, "'a/b' names a folder"),
        ({"a" * 101: {"algorithm.name": "magrpo"}}, "at most 100 letters"),
        ({"magrpo": {"task.size": 1}}, r"task\.size: unknown setting"),
    ],
)
def test_a_mistake_is_one_line_before_any_run(algorithms, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make_plan(config(**algorithms))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"algorithm": {"discount": 0.5}}, r"algorithm\.discount"),
        ({"train": {"episodes": 2}}, r"train\.episodes"),
        ({"run": {"order": "free"}}, r"run\.order"),
        ({"evaluation": {}}, r"evaluation\.KEY"),
    ],
)
def test_an_entry_that_would_reset_what_it_does_not_say_is_one_line(section, key):
    message = rf"compare\.algorithms\.magrpo: .* whole section; write dotted keys such as {key}"
    with pytest.raises(ConfigError, match=message):
        make_plan(config(collm_cc={}, magrpo=section))
    with pytest.raises(ConfigError, match=message):
        config_of(config(magrpo=section), "magrpo")


def test_an_algorithm_under_the_name_of_another_one_is_one_line():
    """Curves and tables would call it by the other one's name."""
    swapped = config(magrpo={"algorithm.name": "collm_cc"})
    message = r"^compare\.algorithms\.magrpo: is the name of an algorithm, .* another name$"
    with pytest.raises(ConfigError, match=message):
        make_plan(swapped)
    with pytest.raises(ConfigError, match=message):
        config_of(swapped, "magrpo")


def test_seeds_must_differ():
    with pytest.raises(ConfigError, match=r"compare\.seeds"):
        make_plan(config(seeds=(1, 1)))


def continues(first, second, folder):
    claim(make_plan(first), folder, None)
    try:
        check_claim(make_plan(second), folder)
    except CheckpointError as error:
        assert "first difference: " in str(error)
        return False
    return True


def test_how_and_how_often_it_is_run_may_change(tmp_path):
    assert continues(config(), config(seeds=(0, 1, 2), workers=1), tmp_path)
    assert not continues(config(), config(collm_cc={}, magrpo={"train.epochs": 2}), tmp_path)


def test_another_algorithm_does_not_join_with_other_settings_for_all(tmp_path):
    first, second = config(seeds=(0,), magrpo={}), config(seeds=(0,), collm_cc={})
    assert continues(first, second, tmp_path)
    train = second.train.model_copy(update={"epochs": 3})
    assert not continues(first, second.model_copy(update={"train": train}), tmp_path)


@pytest.mark.parametrize(("schedule", "extended"), [("constant", True), ("linear", False)])
def test_more_steps_are_another_comparison_where_rates_fall_over_them(schedule, extended, tmp_path):
    first, second = (
        config(
            collm_cc={"models.*.schedule": schedule, "train.environment_steps": steps}, magrpo={}
        )
        for steps in (8, 16)
    )
    assert continues(first, second, tmp_path) is extended


def test_the_config_of_a_label_is_that_of_its_run():
    compared = config(seeds=(0,), magrpo_k8={"algorithm.name": "magrpo", "algorithm.samples": 8})
    (run,) = make_plan(compared).runs
    assert config_of(compared, "magrpo_k8") == run.config


def test_an_algorithm_without_an_entry_has_the_configs_settings():
    compared = config(collm_cc={"train.epochs": 2})
    resolved = config_of(compared, "magrpo")
    assert (resolved.algorithm.name, resolved.train) == ("magrpo", compared.train)
    assert resolved.algorithm.settings == {"discount": 0.9}


def test_the_config_of_a_label_keeps_the_seed():
    compared = load_config({**fabricated.CONFIG, "run": {"seed": 5}})
    assert config_of(compared, "collm_cc").run.seed == 5


def test_an_unknown_label_is_one_line_with_the_nearest():
    compared = config(magrpo_k8={"algorithm.name": "magrpo"})
    with pytest.raises(ConfigError, match=r"unknown algorithm 'magrpo_k9'; .*'magrpo_k8'"):
        config_of(compared, "magrpo_k9")


def made(**counts):
    return RunRecord.model_construct(**{"iterations": 5, "environment_steps": 40} | counts)


def test_a_run_is_extended_by_what_its_budget_has_left():
    settings = {"train.environment_steps": 100}
    (run,) = make_plan(config(seeds=(0,), magrpo=settings)).runs
    assert run.extends(made())
    assert not run.extends(made(environment_steps=100))


def test_a_run_that_has_made_its_iterations_is_not_extended():
    settings = {"train.environment_steps": 100, "train.iterations": 5}
    (run,) = make_plan(config(seeds=(0,), magrpo=settings)).runs
    assert not run.extends(made())
    assert run.extends(made(iterations=4))


def test_names_that_differ_in_case_only_are_refused():
    with pytest.raises(ConfigError, match="'magrpo' and 'MAGRPO' differ in case only"):
        make_plan(config(magrpo={}, MAGRPO={"algorithm.name": "magrpo"}))
