"""A task offers what its class inherits; a member of an optional interface is never unread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from colearn.config import build_task, load_config, resolve
from colearn.contract import (
    DecPOMDP,
    Drawable,
    LegalActions,
    PrivilegedInfo,
    ProgramEpisodes,
    RewardStructure,
    Services,
    horizon_of,
)
from colearn.contract.optional import OPTIONS
from colearn.errors import ConfigError, TaskError
from colearn.testing import check_task
from colearn.types import Outcome

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Turn:
    number: int = 0


class Plain(DecPOMDP[int, Turn]):
    agents = ("a",)
    horizon = 3

    def items(self, split):
        return [0]

    def reset(self, item, rng):
        return Turn()

    def observe(self, state, agent):
        return "go"

    def step(self, state, actions, rng):
        return Outcome(state=Turn(state.number + 1), reward=0.0)

    def metrics(self, state):
        return {}


def test_a_task_without_interfaces_gives_neutral_answers():
    task, state = Plain(), Turn()
    assert Drawable.of(task).render(state) is None
    assert LegalActions.of(task).legal_action(state, "a", RNG) is None
    assert PrivilegedInfo.of(task).privileged_info(state) == ""
    assert RewardStructure.of(task).pays == {"team"}
    assert not ProgramEpisodes.of(task).program
    assert Services.of(task).costs() == {}
    assert horizon_of(task, 0) == 3


@pytest.mark.parametrize(
    ("member", "interface"),
    [
        ("render", "Drawable"),
        ("exact_headline", "ExactlyMeasured"),
        ("horizon_of", "ItemHorizons"),
        ("legal_action", "LegalActions"),
        ("alone", "PlayedAlone"),
        ("privileged_info", "PrivilegedInfo"),
        ("listener", "ProgramEpisodes"),
        ("reads_actions", "ReadsActions"),
        ("pays", "RewardStructure"),
        ("costs", "Services"),
    ],
)
def test_a_member_without_its_interface_is_one_line_at_the_class(member, interface):
    with pytest.raises(TaskError) as raised:
        type("Mine", (Plain,), {member: lambda self: None})
    assert str(raised.value) == (
        f"task.{member}: Mine has it without its interface, so nobody would read it; add "
        f"colearn.contract.{interface} to the bases of Mine, or rename it"
    )


class SetsInConstructor(Plain):
    def __init__(self):
        self.pays = frozenset({"local"})


UNREAD = r"^task\.pays: SetsInConstructor has it without .* colearn\.contract\.RewardStructure"


def test_an_attribute_of_the_instance_is_found_by_the_check():
    with pytest.raises(TaskError, match=UNREAD):
        check_task(SetsInConstructor())


def test_an_attribute_of_the_instance_is_found_by_whoever_reads_the_interface():
    with pytest.raises(TaskError, match=UNREAD):
        RewardStructure.of(SetsInConstructor())


def test_an_attribute_of_the_instance_is_found_before_a_run():
    config = load_config({"task": {"name": "any"}, "models": {}})
    with pytest.raises(TaskError, match=UNREAD):
        resolve(config, task=SetsInConstructor())


def test_one_of_several_abstract_methods_may_be_a_method_of_the_tasks_own():
    class Judged(Plain):
        def judge(self):
            return "mine"

    assert Judged().judge() == "mine"


def test_exact_measures_without_their_interface_are_one_line():
    with pytest.raises(TaskError, match=r"^task\.decisions: .* colearn\.contract\.QueriedTask"):
        type("Mine", (Plain,), {"decisions": lambda self: (), "judge": lambda self: {}})


def test_a_class_of_a_config_that_leaves_its_interface_out_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "unread_task.py").write_text(
        "from colearn.contract import DecPOMDP\n"
        "class Mine(DecPOMDP):\n    def render(self, state): return ''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = load_config({"task": {"name": "unread_task:Mine"}, "models": {}})
    with pytest.raises((ConfigError, TaskError), match=r"colearn\.contract\.Drawable") as raised:
        build_task(config)
    assert "\n" not in str(raised.value)


def test_every_interface_is_one_that_the_check_knows():
    def below(kind):
        return {kind, *(each for child in kind.__subclasses__() for each in below(child))}

    interfaces = {
        kind
        for base in OPTIONS[0].__mro__[1].__subclasses__()
        for kind in below(base)
        if kind.__module__.startswith("colearn.contract.optional")
    }
    assert interfaces == set(OPTIONS)
