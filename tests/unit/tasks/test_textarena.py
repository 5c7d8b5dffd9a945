"""TextArena's games: replayed from seed and actions, paid as TextArena pays."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.textarena import TextArena
from colearn.tasks.textarena.replay import _live, position

arena = pytest.importorskip("textarena")
GAMES = {
    "TicTacToe-v0": {},
    "KuhnPoker-v0": {"words": ("[check]", "[bet]", "[fold]", "[call]")},
    "IteratedPrisonersDilemma-v0": {"words": ("[cooperate]", "[defect]")},
    "LiarsDice-v0": {"players": 3, "words": ("[call]", "[bid: 1, 3]", "[bid: 2, 3]")},
    "GuessTheNumber-v0": {"players": 1, "words": ("[3]", "[10]", "[17]")},
}


def play(task, seed):
    """The last state of a random episode, and all outcomes."""
    rng = np.random.default_rng(seed)
    state = task.reset(task.items("train")[0], rng)
    outcomes = []
    while not outcomes or not (outcomes[-1].done or len(outcomes) == task.horizon):
        [agent] = joint_observations(task, state)
        outcomes.append(task.step(state, {agent: task.legal_action(state, agent, rng)}, rng))
        state = outcomes[-1].state
    return state, outcomes


@pytest.mark.parametrize("env", GAMES)
def test_games_of_one_two_and_more_players_pass_the_check(env):
    task = TextArena(env, horizon=20, **GAMES[env])
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


@pytest.mark.parametrize("env", GAMES)
def test_an_episode_pays_what_the_game_alone_pays(env):
    task = TextArena(env, horizon=200, **GAMES[env])
    for seed in range(2):
        state, outcomes = play(task, seed)
        assert outcomes[-1].done
        alone = arena.make(env)
        alone.reset(num_players=len(task.agents), seed=state.seed)
        for text in state.actions:
            alone.get_observation()
            done, _ = alone.step(action=text)
        payoffs, infos = alone.close()
        assert done
        ours = task.metrics(state)
        assert [ours[f"payoff_player_{k}"] for k in range(len(task.agents))] == [
            payoffs[k] for k in range(len(task.agents))
        ]
        assert ours["invalid"] == float(any(info["invalid_move"] for info in infos.values()))


def test_payoffs_are_local_rewards_at_the_end_alone():
    _, outcomes = play(TextArena("TicTacToe-v0"), 1)
    assert all(set(o.local_rewards.values()) == {0.0} and o.reward == 0.0 for o in outcomes[:-1])
    assert sorted(outcomes[-1].local_rewards.values()) in ([-1.0, 1.0], [0.0, 0.0])


def test_episodes_of_a_game_are_compared_with_each_other():
    task = TextArena("TicTacToe-v0")
    assert len({repr(item) for split in ("train", "test") for item in task.items(split)}) == 1


def test_one_player_and_a_team_are_paid_together():
    alone = TextArena("GuessTheNumber-v0", **GAMES["GuessTheNumber-v0"])
    _, outcomes = play(alone, 0)
    assert alone.pays == {"team"} and not outcomes[-1].local_rewards
    team = TextArena("TicTacToe-v0", team=True)
    _, outcomes = play(team, 1)
    assert outcomes[-1].reward == 0.0, "the mean of a win and a loss"


def test_a_player_reads_the_rules_once_and_then_what_is_new():
    task = TextArena("TicTacToe-v0")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    first = task.observe(state, "player_0")
    assert first.startswith("[GAME] You are Player 0 in Tic Tac Toe.")
    for text in ("[0]", "[4]"):
        [agent] = joint_observations(task, state)
        state = task.step(state, {agent: text}, None).state
    later = task.observe(state, "player_0")
    assert "You are Player 0" not in later and "placed their symbol (X) in cell 4" in later


def test_an_action_without_brackets_is_read_as_textarena_reads_it():
    task = TextArena("TicTacToe-v0")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    after = task.step(state, {"player_0": "4"}, None).state
    assert "placed their symbol (O) in cell 4" in task.observe(after, "player_1")


def test_a_second_invalid_action_loses_the_game():
    task = TextArena("TicTacToe-v0")
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    warned = task.step(state, {"player_0": "hello"}, None)
    assert not warned.done and "attempted an invalid move" in task.observe(warned.state, "player_0")
    lost = task.step(warned.state, {"player_0": "hello"}, None)
    assert lost.done and lost.local_rewards == {"player_0": -1.0, "player_1": 1.0}
    assert task.metrics(lost.state)["invalid"] == 1.0


@pytest.mark.parametrize("env", GAMES)
def test_a_position_is_the_same_whether_replayed_or_continued(env):
    task = TextArena(env, horizon=20, **GAMES[env])
    state, _ = play(task, 3)
    source = task.source
    continued = [position(source, state.seed, state.actions[:k]) for k in range(len(state.actions))]
    position.cache_clear()
    _live._by_play.clear()
    replayed = []
    for k in range(len(state.actions)):
        _live._by_play.clear()
        replayed.append(position(source, state.seed, state.actions[:k]))
    assert replayed == continued


def test_games_leave_the_global_generators_alone():
    random.seed(5)
    np.random.seed(5)
    expected = random.Random(5).random(), np.random.RandomState(5).random()
    play(TextArena("LiarsDice-v0", **GAMES["LiarsDice-v0"]), 11)
    assert (random.random(), np.random.random()) == expected


def test_interleaved_games_draw_from_their_own_generators():
    task = TextArena("LiarsDice-v0", **GAMES["LiarsDice-v0"])
    actions = ("[bid: 1, 3]", "[call]", "[bid: 1, 2]", "[call]")

    def shown(seeds):
        position.cache_clear()
        _live._by_play.clear()
        for k in range(len(actions) + 1):
            for seed in seeds:
                last = position(task.source, seed, actions[:k])
        return last

    assert shown([1]) == shown([2, 3, 1])


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"env": "TicTacTo-v0"}, r"task\.env: no game 'TicTacTo-v0'; did you mean"),
        ({"players": 3}, r"task\.env: 'TicTacToe-v0' does not begin with 3 players"),
        ({"settings": {"size": 9}}, r"task\.env: .* these settings \(.*size"),
        ({"horizon": 0}, r"task\.horizon: must be a whole number"),
    ],
)
def test_a_wrong_setting_is_one_line(settings, line):
    with pytest.raises(ConfigError, match=line) as caught:
        TextArena(**{"env": "TicTacToe-v0", **settings})
    assert "\n" not in str(caught.value)


def test_a_game_that_the_horizon_cuts_has_not_paid_and_is_truncated():
    """Nobody wins TicTacToe in four moves."""
    task = TextArena("TicTacToe-v0", horizon=4)
    _, outcomes = play(task, 0)
    assert [outcome.truncated for outcome in outcomes] == [False, False, False, True]
    metrics = task.metrics(outcomes[-1].state)
    assert (metrics["payoff_player_0"], metrics["payoff_player_1"]) == (None, None)
    assert not any(outcome.truncated for outcome in play(TextArena("TicTacToe-v0"), 0)[1])
