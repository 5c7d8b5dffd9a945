import dataclasses

import pytest

from colearn.advantage.gae import GAE
from colearn.advantage.group_mean import GroupMean
from colearn.advantage.monte_carlo_value import MonteCarloValue
from colearn.advantage.n_step import NStep
from colearn.advantage.q_value import QValue
from colearn.advantage.td_error import TDError
from colearn.algorithms import NAMES
from colearn.config import build_algorithm, load_config
from colearn.critic.centralized import Centralized
from colearn.critic.decentralized import Decentralized
from colearn.errors import ConfigError
from colearn.registry import algorithm_class
from colearn.rollout.chain import Chain
from colearn.rollout.cross import Cross
from colearn.rollout.parallel import Parallel
from colearn.rollout.tree import KaryTree

LEARNING = [name for name in NAMES if algorithm_class(name).learns]


def build(name, **settings):
    """As a run does it: from a config."""
    return build_algorithm(
        load_config(
            {
                "task": {"name": "any"},
                "models": {"*": {"path": "embedded"}},
                "algorithm": {"name": name, **settings},
            }
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_builds_parts_that_fit(name):
    parts = build(name).checked_parts()
    assert (parts.critic is not None) == (name in ("collm_cc", "collm_dc", "ac"))
    assert (parts.value_loss is not None) == (parts.critic is not None)


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_says_when_it_is_wrong(name):
    cls = algorithm_class(name)
    assert "Wrong when" in cls.__doc__
    assert cls.__dataclass_params__.frozen


@pytest.mark.parametrize("name", LEARNING)
def test_the_papers_options_are_off_by_default(name):
    algorithm = build(name)
    assert algorithm.discount == 1.0
    assert algorithm.advantage_clip is None
    assert (algorithm.kl, algorithm.entropy) == (0.0, 0.0)
    if name != "grpo":
        assert (algorithm.ratio, algorithm.ratio_clip) == ("sequence", None)


def test_the_defaults_of_the_critic_methods_are_the_papers():
    for name, critic in (("collm_cc", Centralized()), ("collm_dc", Decentralized())):
        parts = build(name).parts()
        assert parts.rollout == Chain()
        assert parts.critic == critic
        assert parts.advantage == TDError()
        assert (parts.value_loss.coefficient, parts.value_loss.clip) == (1.0, None)
        assert not parts.value_loss.frozen_targets


@pytest.mark.parametrize(
    ("settings", "advantage"),
    [
        ({"advantage_clip": 0.2, "discount": 0.9}, TDError(discount=0.9, clip=0.2)),
        ({"bootstrap": "n_step", "n": 3}, NStep(n=3)),
        ({"bootstrap": "gae", "lam": 0.5}, GAE(lam=0.5)),
        ({"bootstrap": "mc", "normalize_advantage": True}, MonteCarloValue(normalize=True)),
        ({"value": "q"}, QValue()),
    ],
)
def test_the_bootstrap_chooses_the_advantage(settings, advantage):
    for name in ("collm_cc", "collm_dc", "ac"):
        parts = build(name, **settings).checked_parts()
        assert parts.advantage == advantage
        assert parts.critic.value == settings.get("value", "v")


@pytest.mark.parametrize(
    ("shape", "rollout"), [("tree", KaryTree(3)), ("cross", Cross(3)), ("parallel", Parallel(3))]
)
def test_the_shape_chooses_the_rollout(shape, rollout):
    assert build("magrpo", shape=shape, samples=3).parts().rollout == rollout


@pytest.mark.parametrize("name", ["magrpo", "marloo", "maremax", "grpo"])
def test_a_group_of_one_is_an_error_that_names_the_remedy(name):
    with pytest.raises(ConfigError, match=r"^algorithm\.samples: .*K=1; set samples to 2 or more"):
        build(name, samples=1)


def test_reinforce_needs_no_group():
    assert build("mareinforce", samples=1).checked_parts().rollout.group_size == 1


def test_an_expectile_changes_the_baseline_or_the_critic_and_nothing_else():
    from colearn.advantage.group_expectile import GroupExpectile

    assert build("magrpo", expectile=0.9).parts().advantage == GroupExpectile(level=0.9)
    for name in ("collm_cc", "collm_dc"):
        parts = build(name, expectile=0.9).checked_parts()
        assert parts.advantage == TDError(expectile=0.9)
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


def test_global_information_can_be_off():
    assert not build("collm_cc", global_info=False).parts().critic.global_info
    assert not build("collm_dc", global_info=False).parts().critic.global_info


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [
        ("collm_cc", {"discount": 2.0}, "discount"),
        ("collm_cc", {"advantage_clip": -1.0}, "advantage_clip"),
        ("collm_cc", {"bootstrap": "td2"}, "bootstrap"),
        ("collm_cc", {"value": "q", "bootstrap": "gae"}, "bootstrap"),
        ("collm_cc", {"value": "q", "expectile": 0.9}, "expectile"),
        ("collm_cc", {"expectile": 1.0}, "expectile"),
        ("magrpo", {"expectile": 0.0}, "expectile"),
        ("magrpo", {"expectile": 0.9, "normalize_std": True}, "normalize_std"),
        ("collm_cc", {"value_clip": 0.0}, "value_clip"),
        ("collm_dc", {"value_coefficient": -1.0}, "value_coefficient"),
        ("collm_dc", {"sampels": 2}, "sampels"),
        ("magrpo", {"shape": "bush"}, "shape"),
        ("magrpo", {"samples": 0}, "samples"),
        ("magrpo", {"ratio_clip": 2.0}, "ratio_clip"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_the_field(name, settings, field):
    with pytest.raises(ConfigError, match=rf"^algorithm\.{field}: [^\n]+$"):
        build(name, **settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("collm_cc", {"bootstrap": "td2"}),
        ("collm_cc", {"value": "a"}),
        ("magrpo", {"shape": "bush"}),
    ],
)
def test_python_users_get_the_same_errors(name, settings):
    with pytest.raises(ConfigError, match=rf"^algorithm\.{next(iter(settings))}: [^\n]+; [^\n]+$"):
        algorithm_class(name)(**settings).checked_parts()


def test_an_algorithm_is_a_value():
    cls = algorithm_class("magrpo")
    assert cls() == cls()
    assert dataclasses.replace(cls(), samples=2).parts().rollout == KaryTree(2)
