"""PettingZoo's environments as text: replayed, paid as PettingZoo pays."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.pettingzoo import PettingZoo, Phrasing
from colearn.tasks.pettingzoo.replay import _live, make, situation

pytest.importorskip("pettingzoo", reason="needs the games extra")

TURNED = ("classic/rps_v2", "classic/tictactoe_v3", "classic/connect_four_v3")
PARALLEL = {"env": "classic/rps_v2", "parallel": True}


def play(task, seed):
    rng = np.random.default_rng(seed)
    state = task.reset(task.items("train")[0], rng)
    outcomes = []
    for _ in range(task.horizon):
        seen = joint_observations(task, state)
        said = {agent: task.legal_action(state, agent, rng) for agent in seen}
        outcomes.append(task.step(state, said, rng))
        state = outcomes[-1].state
        if outcomes[-1].done:
            break
    return state, outcomes


@pytest.mark.parametrize("settings", [*({"env": env} for env in TURNED), PARALLEL])
def test_every_environment_passes_the_check(settings):
    task = PettingZoo(horizon=9, **settings)
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


@pytest.mark.parametrize("env", TURNED)
def test_an_episode_pays_what_the_environment_alone_pays(env):
    for seed in range(4):
        task = PettingZoo(env=env, horizon=60)
        state, outcomes = play(task, seed)
        alone = make(task.source)
        alone.reset(seed=state.seed)
        paid = dict.fromkeys(task.agents, 0.0)
        for [(agent, action)] in state.actions:
            assert alone.agent_selection == agent
            alone.step(action)
            for name, reward in alone.rewards.items():
                paid[name] += reward
        assert {a: sum(o.local_rewards[a] for o in outcomes) for a in task.agents} == paid
        assert dict(zip(task.agents, state.returns, strict=True)) == paid
        out = [alone.terminations[a] or alone.truncations[a] for a in alone.agents]
        assert outcomes[-1].done and all(out)


def test_the_parallel_form_pays_both_at_once():
    task = PettingZoo(**PARALLEL)
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    said = {"player_0": "Paper", "player_1": "Rock"}
    assert joint_observations(task, state).keys() == said.keys()
    outcome = task.step(state, said, np.random.default_rng(0))
    assert outcome.local_rewards == {"player_0": 1.0, "player_1": -1.0}
    assert task.observe(outcome.state, "player_0").startswith("The other chose Rock.")


def test_a_situation_is_the_same_whether_replayed_or_gone_on_from():
    task = PettingZoo(env="classic/connect_four_v3")
    state, _ = play(task, 3)
    on = situation(task.source, state.seed, state.actions[:-1])
    situation.cache_clear()
    _live._by_play.clear()
    again = situation(task.source, state.seed, state.actions[:-1])
    assert again.acting == on.acting and again.legal == on.legal
    for agent in on.acting:
        assert np.array_equal(on.seen[agent], again.seen[agent])


def test_tic_tac_toe_says_the_cells_as_the_board_shows_them():
    task = PettingZoo(env="classic/tictactoe_v3")
    rng = np.random.default_rng(0)
    state = task.reset(task.items("train")[0], rng)
    for row in range(3):
        for column in range(3):
            after = task.step(state, {"player_1": f"({row},{column})"}, rng).state
            rows = task.observe(after, "player_2").splitlines()[2:5]
            assert rows[row][column] == "O"
            assert sum(line.count("O") for line in rows) == 1


def test_a_reply_that_is_no_action_ends_the_episode_and_costs_its_agent():
    task = PettingZoo(env="classic/tictactoe_v3", invalid_penalty=2.0)
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    outcome = task.step(state, {"player_1": "the middle"}, np.random.default_rng(0))
    assert outcome.done and outcome.local_rewards == {"player_1": -2.0, "player_2": 0.0}
    assert task.metrics(outcome.state)["invalid"] == 1.0
    assert joint_observations(task, outcome.state) == {}


class Shouted(Phrasing):
    def word(self, agent, action):
        return f"{super().word(agent, action)}!"


def test_a_phrasing_of_ones_own_is_found_by_its_name():
    task = PettingZoo(env="classic/connect_four_v3", phrasing=f"{__name__}:Shouted")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    assert task.observe(state, "player_0").endswith(
        "Answer with one of: 0!, 1!, 2!, 3!, 4!, 5!, 6!"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": "classic/chessmaster_v1"}, "task.env: no environment 'classic/chessmaster_v1'"),
        ({"env": "classic/rps_v1"}, "task.env: no environment 'classic/rps_v1'; "),
        ({"env": "rps"}, "task.env: no environment 'rps'; "),
        ({"env": "classic/rps_v2", "settings": {"games": 3}}, "task.settings: "),
        ({"settings": {"num_actions": 4}}, "task.settings: The number of actions must be an odd"),
        ({"env": "classic/tictactoe_v3", "parallel": True}, "task.parallel: "),
        (
            {"phrasing": "nowhere:Nothing"},
            "task.phrasing: no module 'nowhere' for 'nowhere:Nothing'",
        ),
        ({"horizon": 0}, "task.horizon: must be a whole number, got 0; set it to 1 or more"),
        ({"invalid_penalty": -1}, "task.invalid_penalty: must be a number of 0 or more"),
    ],
)
def test_a_bad_setting_is_one_line_with_its_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        PettingZoo(**settings)


def test_an_environment_whose_package_is_missing_is_one_line_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "chess", None)
    for module in [name for name in sys.modules if name.startswith("pettingzoo.classic.chess")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ConfigError, match=r"^task\.env: 'classic/chess_v6' needs the package 'che"):
        PettingZoo(env="classic/chess_v6")


def test_an_environment_that_says_itself_what_it_needs_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "shimmy", None)
    with pytest.raises(ConfigError, match=r"^task\.env: 'classic/hanabi_v5': Hanabi depends on"):
        PettingZoo(env="classic/hanabi_v5")


def test_episodes_of_an_environment_are_compared_with_each_other():
    task = PettingZoo()
    assert len({repr(item) for split in ("train", "test") for item in task.items(split)}) == 1
