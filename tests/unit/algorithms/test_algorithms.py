import re

import pytest

from colearn.algorithms import NAMES
from colearn.config import build_algorithm, load_config
from colearn.errors import ConfigError
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.group_baseline import GroupExpectile, GroupMean
from colearn.methods.advantage.q_value import QValue
from colearn.methods.critic.centralized import Centralized
from colearn.methods.critic.decentralized import Decentralized
from colearn.registry import algorithm_class
from colearn.rollout.shapes import Chain, Cross, KaryTree, Parallel

WORKFLOW = ("mappo", "mappo_call", "mhgpo", "mhgpo_is", "mhgpo_rr")
"""Algorithms whose papers use clip and KL, and whose credit already is the return."""
LEARNING = [name for name in NAMES if algorithm_class(name).learns]


def build(name, **settings):
    """The algorithm as a run builds it from a config."""
    return build_algorithm(
        load_config(
            {
                "task": {"name": "any"},
                "models": {"*": {"path": "embedded"}},
                "algorithm": {"name": name, **settings},
            }
        )
    )


SELF_PLAY = {"marshal", "mt_grpo", "spiral_rae", "trajectory_grpo"}
CLIPPED = {"at_grpo", "grpo", "marshal", "mt_grpo", "trajectory_grpo"}


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_builds_parts_that_fit(name):
    parts = build(name).checked_parts()
    critics = ("collm_cc", "collm_dc", "coma", "ac", "mappo", "mappo_call")
    assert (parts.critic is not None) == (name in critics)
    special = {"mappo": "token", "coma": "counterfactual"}
    reads = special.get(name, "v" if parts.critic is not None else None)
    assert parts.advantage.reads == reads


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_says_when_it_is_wrong(name):
    cls = algorithm_class(name)
    assert "Wrong when" in cls.__doc__
    assert cls.__dataclass_params__.frozen


@pytest.mark.parametrize("name", [name for name in LEARNING if name not in WORKFLOW])
def test_the_papers_options_are_off_by_default(name):
    algorithm = build(name)
    assert algorithm.discount == 1.0
    loss = algorithm.loss
    if name not in SELF_PLAY and name != "distillation":  # whose advantages have no clip at all
        assert algorithm.advantage.clip is None
    assert (loss.kl, loss.entropy) == (0.0, 0.0)
    assert loss.teacher == (1.0 if name == "distillation" else 0.0)
    if name not in CLIPPED:
        assert (loss.ratio, loss.clip) == ("sequence", None)


@pytest.mark.parametrize("name", WORKFLOW)
def test_workflow_methods_have_mhgpos_values(name):
    """Table 2: clip 0.2, KL 0.001, groups of 4; the critic's baseline has no KL to a reference."""
    algorithm = build(name)
    assert (algorithm.loss.ratio, algorithm.loss.clip) == ("token", 0.2)
    assert algorithm.loss.kl == (0.0 if "mappo" in name else 0.001)
    assert algorithm.discount == 0.0
    assert algorithm.rollout.group_size == (1 if "mappo" in name else 4)


def test_the_defaults_of_the_critic_methods_are_the_papers():
    for name, critic in (("collm_cc", Centralized()), ("collm_dc", Decentralized())):
        parts = build(name).parts()
        assert parts.rollout == Chain()
        assert parts.critic == critic
        assert parts.advantage == GAE()
        assert (parts.value_loss.coefficient, parts.value_loss.clip) == (1.0, None)
        assert not parts.value_loss.frozen_targets


Q = {"critic": {"value": "q"}, "advantage": {"name": "q_value"}}


@pytest.mark.parametrize(
    ("settings", "advantage"),
    [
        ({"advantage": {"clip": 0.2}, "discount": 0.9}, GAE(clip=0.2)),
        ({"advantage": {"lam": 1.0, "steps": 3}}, GAE(lam=1.0, steps=3)),
        ({"advantage": {"lam": 0.5}}, GAE(lam=0.5)),
        ({"advantage": {"lam": 1, "normalize": True}}, GAE(lam=1.0, normalize=True)),
        (Q, QValue()),
    ],
)
def test_the_settings_choose_the_advantage(settings, advantage):
    for name in ("collm_cc", "collm_dc", "ac"):
        parts = build(name, **settings).checked_parts()
        assert parts.advantage == advantage
        assert parts.discount == settings.get("discount", 1.0)
        assert parts.critic.value == settings.get("critic", {}).get("value", "v")


@pytest.mark.parametrize(
    ("shape", "rollout"), [("tree", KaryTree(3)), ("cross", Cross(3)), ("parallel", Parallel(3))]
)
def test_the_name_chooses_the_rollout(shape, rollout):
    assert build("magrpo", rollout={"name": shape, "k": 3}).parts().rollout == rollout


@pytest.mark.parametrize("name", ["magrpo", "marloo", "maremax", "grpo"])
def test_a_group_of_one_is_an_error_that_names_the_remedy(name):
    with pytest.raises(ConfigError, match=r"^algorithm\.rollout\.k: .*K=1; set it to 2 or more"):
        build(name, rollout={"k": 1})


def test_reinforce_needs_no_group():
    assert build("mareinforce", rollout={"k": 1}).checked_parts().rollout.group_size == 1


def test_an_expectile_changes_the_baseline_or_the_critic_and_nothing_else():
    group = build("magrpo", advantage={"name": "group_expectile", "level": 0.9})
    assert group.parts().advantage == GroupExpectile(level=0.9)
    settings = {"advantage": {"expectile": 0.9}, "value_loss": {"expectile": 0.9}}
    for name in ("collm_cc", "collm_dc"):
        parts = build(name, **settings).checked_parts()
        assert parts.advantage == GAE(expectile=0.9)
        assert parts.value_loss.expectile == 0.9
        assert parts.loss == build(name).parts().loss


def test_the_four_group_methods_differ_in_their_baseline_alone():
    parts = [build(name).parts() for name in ("magrpo", "marloo", "maremax", "mareinforce")]
    assert len({type(part.advantage) for part in parts}) == 4
    assert len({(part.rollout, part.loss) for part in parts}) == 1


def test_only_grpo_divides_by_the_deviation():
    assert build("magrpo").parts().advantage == GroupMean()
    parts = build("grpo").parts()
    assert parts.advantage == GroupMean(normalize_std=True)
    assert parts.rollout == Parallel(4)
    assert (parts.loss.ratio, parts.loss.clip) == ("token", 0.2)


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [
        ("collm_cc", {"discount": 2.0}, "discount"),
        ("collm_cc", {"discount": 1.5}, "discount"),
        ("magrpo", {"discount": -0.1}, "discount"),
        ("collm_cc", {"advantage": {"clip": -1.0}}, "advantage.clip"),
        ("collm_cc", {"advantage": {"name": "td2"}}, "advantage.name"),
        ("collm_cc", {**Q, "advantage": {"lam": 0.9}}, "advantage"),
        ("collm_cc", {"critic": {"value": "q"}}, "advantage"),
        ("collm_cc", {"advantage": {"name": "q_value", "expectile": 0.9}}, "advantage.expectile"),
        ("collm_cc", {"advantage": {"expectile": 1.0}}, "advantage.expectile"),
        ("magrpo", {"advantage": {"name": "group_expectile", "level": 0.0}}, "advantage.level"),
        (
            "magrpo",
            {"advantage": {"name": "group_expectile", "level": 0.9, "normalize_std": True}},
            "advantage.normalize_std",
        ),
        ("collm_cc", {"value_loss": {"clip": 0.0}}, "value_loss.clip"),
        ("collm_dc", {"value_loss": {"coefficient": -1.0}}, "value_loss.coefficient"),
        ("collm_dc", {"sampels": 2}, "sampels"),
        ("magrpo", {"rollout": {"name": "bush"}}, "rollout.name"),
        ("magrpo", {"rollout": {"k": 0}}, "rollout.k"),
        ("magrpo", {"loss": {"clip": 2.0}}, "loss.clip"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_the_field(name, settings, field):
    with pytest.raises(ConfigError, match=rf"^algorithm\.{re.escape(field)}: [^\n]+$"):
        build(name, **settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("collm_cc", {"advantage": QValue()}),
        ("collm_cc", {"critic": Centralized(value="q")}),
        ("magrpo", {"rollout": KaryTree(1)}),
        ("magrpo", {"discount": 2.0}),
    ],
)
def test_python_users_get_the_same_errors(name, settings):
    key = {"critic": "advantage", "rollout": r"rollout\.k"}.get(key := next(iter(settings)), key)
    with pytest.raises(ConfigError, match=rf"^{key}: [^\n]+; [^\n]+$"):
        algorithm_class(name)(**settings).checked_parts()
