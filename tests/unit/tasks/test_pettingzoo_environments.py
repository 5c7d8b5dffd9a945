"""Environments of one's own that use what PettingZoo's interface allows and its own do not."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.errors import ConfigError, TaskError
from colearn.tasks.pettingzoo import PettingZoo, replay
from colearn.tasks.pettingzoo.phrasing import Plain

pettingzoo = pytest.importorskip("pettingzoo", reason="needs the games extra")
spaces = pytest.importorskip("gymnasium.spaces", reason="needs the games extra")


class Counter(pettingzoo.ParallelEnv):
    """Three steps, each paid 1; the observation is one array that every step changes in place."""

    names = ("a", "b")
    space = spaces.Discrete(3)
    mask = None
    keeps_agents = False

    def __init__(self):
        self.possible_agents = list(self.names)

    def observation_space(self, agent):
        return spaces.Box(0, 9, (3,))

    def action_space(self, agent):
        return self.space

    def seen(self):
        return self.board

    def reset(self, seed=None, options=None):
        self.agents, self.board = list(self.names), np.zeros(3, int)
        return {a: self.seen() for a in self.agents}, self.infos()

    def infos(self):
        return {a: {} if self.mask is None else {"action_mask": self.mask} for a in self.agents}

    def step(self, actions):
        assert all(self.space.contains(action) for action in actions.values())
        self.board += 1
        over, acted = bool(self.board[0] == 3), list(self.agents)
        seen, infos = {a: self.seen() for a in acted}, self.infos()
        if over and not self.keeps_agents:
            self.agents = []
        ended = dict.fromkeys(acted, over)
        return seen, dict.fromkeys(acted, 1.0), dict.fromkeys(acted, False), ended, infos


class Board(Counter):
    """Shows the board of its settings."""

    def __init__(self, board):
        super().__init__()
        self.first = board

    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        self.board = self.first.copy()
        return {a: self.seen() for a in observations}, infos


@pytest.fixture
def made(monkeypatch):
    def make(**differences):
        kind = type("Changed", (Counter,), differences)
        monkeypatch.setattr(replay, "creator", lambda source: kind)
        replay.situation.cache_clear()
        replay._live._by_play.clear()
        return PettingZoo(env="own/counter_v0", parallel=True)

    return make


def begun(task):
    return task.reset(task.items("train")[0], np.random.default_rng(0))


def played(task):
    rng, state, outcomes = np.random.default_rng(0), begun(task), []
    while not outcomes or not outcomes[-1].done:
        said = {a: task.legal_action(state, a, rng) for a in joint_observations(task, state)}
        outcomes.append(task.step(state, said, rng))
        state = outcomes[-1].state
        assert len(outcomes) <= task.horizon
    return outcomes


def test_an_observation_that_the_environment_changes_in_place_stays_what_the_agent_read(made):
    task = made()
    before = begun(task)
    first = task.observe(before, "a")
    played(task)
    assert task.observe(before, "a") == first
    assert first.endswith("[0, 0, 0]\nAnswer with one of: 0, 1, 2")


def test_a_discrete_space_that_starts_above_0_has_its_own_numbers(made):
    task = made(space=spaces.Discrete(3, start=4))
    assert task.observe(begun(task), "a").endswith("Answer with one of: 4, 5, 6")
    played(task)


def test_a_mask_counts_from_the_start_of_its_space(made):
    space, mask = spaces.Discrete(3, start=4), np.array([0, 1, 0], np.int8)
    task = made(space=space, mask=mask)
    assert replay.situation(task.source, 0, ()).legal["a"] == (int(space.sample(mask=mask)),)


@pytest.mark.parametrize(
    ("word", "line"),
    [
        (lambda self, agent, action: str(min(action, 1)), "actions 1 and 2 of 'a' have the same"),
        (lambda self, agent, action: f"go {action} ", "action 0 of 'a' is 'go 0 ', which no reply"),
        (lambda self, agent, action: action, "action 0 of 'a' is 0, which no reply can be"),
        (lambda self, agent, action: "", "action 0 of 'a' is '', which no reply can be"),
    ],
)
def test_each_legal_action_has_a_word_of_its_own_that_a_reply_can_spell(
    made, word, line, monkeypatch
):
    monkeypatch.setattr(Plain, "word", word)
    task = made()
    said = dict.fromkeys(("a", "b"), "1")
    with pytest.raises(TaskError, match=rf"^task\.phrasing: .*{line}"):
        task.step(begun(task), said, np.random.default_rng(0))


def test_actions_of_several_bits_are_refused(made):
    with pytest.raises(ConfigError, match=r"^task\.env: the actions of 'a' .* are not discrete"):
        made(space=spaces.MultiBinary(3))


def test_agents_that_are_numbers_act(made):
    outcomes = played(made(names=(0, 1)))
    assert [outcome.local_rewards for outcome in outcomes] == [{"0": 1.0, "1": 1.0}] * 3


def test_an_agent_whose_episode_was_truncated_acts_no_more_though_it_stays_listed(made):
    assert len(played(made(keeps_agents=True))) == 3


def test_an_episode_is_truncated_though_nobody_observes_its_end(made):
    def step(self, actions):
        _, *results = Counter.step(self, actions)
        return {a: self.seen() for a in self.agents}, *results

    assert [outcome.truncated for outcome in played(made(step=step))] == [False, False, True]


def test_a_last_reward_that_the_environment_leaves_out_is_an_error(made):
    def step(self, actions):
        seen, _, *results = Counter.step(self, actions)
        return seen, dict.fromkeys(self.agents, 1.0), *results

    task = made(step=step)
    with pytest.raises(TaskError, match=r"^task\.env: step pays 'a' nothing; return a reward"):
        played(task)


@pytest.mark.parametrize(
    ("seen", "shown"),
    [
        ({"board": np.arange(2), "action_mask": np.array([0, 1, 0])}, "board: [0, 1]"),
        (
            {"observation": np.arange(2), "tools": 7, "action_mask": np.array([0, 1, 0])},
            "observation: [0, 1]\ntools: 7",
        ),
        ({"observation": np.arange(2), "action_mask": np.array([0, 1, 0])}, "[0, 1]"),
    ],
)
def test_the_mask_is_taken_from_any_dictionary_and_nothing_else_is(made, seen, shown):
    text = begun_text(made(seen=lambda self: seen))
    assert text.endswith(f"with b.\n{shown}\nAnswer with one of: 1")


def test_parts_of_different_shapes_are_shown_part_by_part(made):
    text = begun_text(made(seen=lambda self: (np.arange(2), 5, "north")))
    assert "\n[0, 1]\n5\nnorth\n" in text


def test_no_number_of_an_array_of_1024_is_left_out(made):
    text = begun_text(made(seen=lambda self: np.ones((32, 32), int)))
    assert text.count("1") == 1024 + 1  # one in the list of actions


@pytest.mark.parametrize(
    ("seen", "count"),
    [
        (np.zeros((64, 64, 3)), "12,288"),
        ({"near": np.ones((32, 32), int), "far": [1], "word": "north"}, "1,025"),
    ],
)
def test_more_than_1024_numbers_are_refused_in_one_line(made, seen, count):
    line = f"task.phrasing: an observation has {count} numbers; name a Phrasing that writes what"
    with pytest.raises(TaskError, match=f"^{line} matters"):
        begun_text(made(seen=lambda self: seen))


@pytest.mark.parametrize(("name", "place"), [("legal_actions", "seen"), ("mask", "infos")])
def test_a_mask_under_another_name_is_refused_since_all_actions_would_count_as_legal(
    made, name, place
):
    parts = {name: np.array([0, 1, 0])}
    shown = {
        "seen": lambda self: {"board": np.arange(2), **parts},
        "infos": lambda self: dict.fromkeys(self.agents, parts),
    }
    with pytest.raises(TaskError, match=rf"^task\.env: 'a' has '{name}' and no 'action_mask'"):
        begun(made(**{place: shown[place]}))


def test_settings_may_be_arrays():
    one, other = (
        PettingZoo(
            env="test_pettingzoo_environments:Board", parallel=True, settings={"board": board}
        )
        for board in (np.arange(3), np.arange(3) + 5)
    )
    texts = [joint_observations(task, begun(task)) for task in (one, other)]
    assert texts[0] != texts[1]


def begun_text(task):
    return task.observe(begun(task), "a")


def test_more_choices_than_rock_paper_and_scissors_have_pettingzoos_names():
    task = PettingZoo(env="classic/rps_v2", parallel=True, settings={"num_actions": 5})
    known = replay.make(task.source).unwrapped
    after = task.step(begun(task), {"player_0": "Spock", "player_1": "Lizard"}, None)
    assert task.observe(after.state, "player_0").startswith("The other chose Lizard.\n")
    names = getattr(known, "aec_env", known).unwrapped._moves[:5]
    words = [task._say.word("player_0", number) for number in range(5)]
    assert [word.upper() for word in words] == names


@pytest.mark.parametrize("paid", [None, np.complex64(1 + 2j)])
def test_a_reward_that_is_no_number_is_one_line(made, paid):
    def step(self, actions):
        seen, rewards, *rest = Counter.step(self, actions)
        return seen, dict.fromkeys(rewards, paid), *rest

    with pytest.raises(TaskError, match=r"^task\.env: 'a' was paid [^\n]+; the environment must "):
        played(made(step=step))


@pytest.mark.parametrize("silent", [("a",), ("a", "b")])
def test_a_team_pays_the_whole_penalty_once(silent):
    task = PettingZoo(env=f"{__name__}:Counter", parallel=True, team=True, invalid_penalty=3.0)
    said = {agent: "?" if agent in silent else "1" for agent in ("a", "b")}
    outcome = task.step(begun(task), said, np.random.default_rng(0))
    assert outcome.done and outcome.reward == -3.0
    assert outcome.local_rewards == {a: -3.0 * (a in silent) for a in ("a", "b")}


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("continuous_actions", "set task.settings.continuous_actions to false"),
        ("continuous", "set task.settings.continuous to false"),
        ("colour", "choose another environment"),
    ],
)
def test_continuous_actions_are_refused_with_the_setting_that_makes_them_discrete(
    made, setting, remedy
):
    names = {}
    exec(f"def __init__(self, {setting}=True): self.possible_agents = ['a', 'b']", names)
    with pytest.raises(ConfigError, match=rf"are not discrete; {remedy}$"):
        made(space=spaces.Box(-1, 1, (2,)), __init__=names["__init__"])


def test_an_environment_of_ones_own_is_played_by_its_name_and_leaves_out_its_module():
    task = PettingZoo(env=f"{__name__}:Counter", parallel=True)
    assert begun_text(task).startswith("You are a in Counter, with b.\n")
    assert len(played(task)) == 3


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"env": f"{__name__}:Counter"}, "made a Counter, which is not PettingZoo's AECEnv; "),
        ({"env": f"{__name__}:Count"}, "has no 'Count'"),
        ({"env": "counter"}, "or module:Class for an environment of your own"),
    ],
)
def test_an_environment_that_the_task_cannot_play_is_one_line(settings, line):
    with pytest.raises(ConfigError, match=rf"^task\.env: [^\n]*{line}"):
        PettingZoo(**settings)
