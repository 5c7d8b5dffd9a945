import itertools

import numpy as np
import pytest
from dpomdp_files import RELAY

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.dpomdp import PlayState, TextDecPOMDP

SHIPPED = ("climbing", "dec_tiger", "lock", "penalty", "two_step", "vault")


def play(task, replies, seed=0):
    """The outcomes of an episode in which every agent says its text of `replies`, turn by turn."""
    rng = np.random.default_rng(seed)
    state = task.reset(task.items("train")[0], rng)
    outcomes = []
    for said in replies:
        outcomes.append(task.step(state, dict(zip(task.agents, said, strict=True)), rng))
        state = outcomes[-1].state
    return outcomes


def matrix_of(problem, size):
    """The one-turn payoffs of a game, first agent by rows."""
    task = TextDecPOMDP(problem=problem)
    rewards = [play(task, [pair])[0].reward for pair in itertools.product("abc"[:size], repeat=2)]
    return np.array(rewards).reshape(size, size).tolist()


def state_of(task, name, turn=0):
    hidden = task.model.states.index(name)
    return PlayState(hidden=hidden, turn=turn, observations=None, value=0.0, legal=True)


@pytest.mark.parametrize("problem", SHIPPED)
def test_every_shipped_problem_passes_with_legal_play(problem):
    task = TextDecPOMDP(problem=problem)
    check_task(task, seeds=(0,), episodes=2, actions=task.legal_action)


def test_a_file_of_three_named_agents_passes(tmp_path):
    path = tmp_path / "relay.dpomdp"
    path.write_text(RELAY)
    task = TextDecPOMDP(file=str(path), horizon=3)
    check_task(task, seeds=(0,), episodes=2, actions=task.legal_action)
    assert task.agents == ("north", "mid", "south")
    assert task.items("test")[0].name == "relay"


@pytest.mark.parametrize(
    ("problem", "horizon"),
    [("climbing", 1), ("dec_tiger", 3), ("lock", 6), ("penalty", 1), ("two_step", 2), ("vault", 6)],
)
def test_a_shipped_problem_has_its_usual_horizon(problem, horizon):
    assert TextDecPOMDP(problem=problem).horizon == horizon


@pytest.mark.parametrize(
    ("problem", "payoffs"),
    [
        ("climbing", [[11, -30, 0], [-30, 7, 6], [0, 0, 5]]),
        ("penalty", [[10, 0, -30], [0, 2, 0], [-30, 0, 10]]),
    ],
)
def test_a_matrix_game_pays_as_published(problem, payoffs):
    assert matrix_of(problem, 3) == payoffs


@pytest.mark.parametrize(("first", "payoffs"), [("a", [[7, 7], [7, 7]]), ("b", [[0, 1], [1, 8]])])
def test_the_first_agents_first_action_chooses_the_second_game(first, payoffs):
    task = TextDecPOMDP(problem="two_step", turn="{observation}")
    for other, mine, theirs in itertools.product("ab", repeat=3):
        before, after = play(task, [(first, other), (mine, theirs)])
        assert before.reward == 0
        assert task.observe(before.state, "agent_2") == f"in-2{first.upper()}"
        assert after.reward == payoffs["ab".index(mine)]["ab".index(theirs)]


def simulated_vault(keys, said, lit):
    """Rewards and observations of the vault, or of the lock (light on), from the rules."""
    notches, rewards, seen = 0, [], []
    for turn, pair in enumerate(said):
        notches += turn > 0 and tuple(pair) == tuple(keys)
        rewards.append(10.0 if turn == 5 and notches >= 3 else 0.0)
        seen.append(tuple(f"key-{key}" if lit or turn == 0 else "dark" for key in keys))
    return rewards, seen


@pytest.mark.parametrize(("problem", "lit"), [("vault", False), ("lock", True)])
def test_the_vault_and_the_lock_agree_with_a_simulation_of_their_rules(problem, lit):
    task = TextDecPOMDP(problem=problem, turn="{observation}")
    rng, drawn, won = np.random.default_rng(1), set(), 0
    names = {"l": "left", "r": "right"}
    for seed in range(200):
        state = task.reset(task.items("train")[0], np.random.default_rng(seed))
        keys = [names[letter] for letter in task.model.states[state.hidden][:2]]
        follows = rng.random((6, 2)) < 0.75
        said = [
            [key if follow else ("right" if key == "left" else "left") for key, follow in turn]
            for turn in (list(zip(keys, row, strict=True)) for row in follows)
        ]
        rewards, seen = simulated_vault(keys, said, lit)
        outcomes = play(task, said, seed)
        assert [outcome.reward for outcome in outcomes] == rewards
        for outcome, texts in zip(outcomes[:-1], seen[:-1], strict=True):
            assert tuple(task.observe(outcome.state, agent) for agent in task.agents) == texts
        drawn.add(tuple(keys))
        won += rewards[-1] > 0
    assert len(drawn) == 4 and 20 < won < 180


def test_each_agent_hears_right_in_85_of_100_turns_and_they_listen_apart():
    task = TextDecPOMDP()
    rng, before = np.random.default_rng(0), state_of(task, "tiger-left")
    listens = {"agent_1": "listen", "agent_2": "listen"}
    seen = [task.step(before, listens, rng).state.observations for _ in range(2000)]
    assert abs(np.mean([number == 0 for pair in seen for number in pair]) - 0.85) < 0.02
    assert abs(np.mean([pair == (1, 1) for pair in seen]) - 0.0225) < 0.012


def test_rewards_add_up_to_the_value():
    outcomes = play(TextDecPOMDP(), [("listen", "listen")] * 3)
    assert [outcome.state.value for outcome in outcomes] == [-2, -4, -6]


def test_space_around_a_reply_is_ignored():
    outcome = play(TextDecPOMDP(), [(" listen\n", "\tlisten")])[0]
    assert outcome.reward == -2 and not outcome.done


@pytest.mark.parametrize("reply", ["", "Listen", "listen.", "key-left", "listen\nx"])
def test_any_other_reply_is_rejected_and_ends_the_episode(reply):
    outcome = play(TextDecPOMDP(), [("listen", reply)])[0]
    assert outcome.done and not outcome.state.legal


@pytest.mark.parametrize(("turn", "reward"), [(0, -303), (1, -202), (2, -101)])
def test_a_rejection_costs_the_worst_reward_of_all_turns_left(turn, reward):
    task = TextDecPOMDP()
    replies = [("listen", "listen")] * turn + [("listen", "?")]
    assert play(task, replies)[turn].reward == reward == task.rejection_reward(turn)


def test_a_penalty_replaces_the_worst_reward():
    task = TextDecPOMDP(penalty=-7, reward_scale=0.5)
    outcome = play(task, [("?", "listen")])[0]
    assert outcome.reward == -3.5 and task.metrics(outcome.state)["value"] == -7


def test_the_scale_multiplies_rewards_and_leaves_metrics():
    task = TextDecPOMDP(problem="climbing", reward_scale=0.1)
    outcome = play(task, [("b", "b")])[0]
    assert outcome.reward == pytest.approx(0.7, abs=1e-15)
    assert task.metrics(outcome.state) == {"value": 7, "legal": 1}


def test_the_reward_range_is_scaled_and_holds_the_penalty():
    assert TextDecPOMDP(reward_scale=0.5).reward_range == (-151.5, 10)
    assert TextDecPOMDP(problem="climbing", penalty=-50).reward_range == (-50, 11)


def test_nobody_acts_after_a_rejection_or_the_last_turn():
    task = TextDecPOMDP(problem="climbing")
    for replies in [("a", "?")], [("a", "a")]:
        assert joint_observations(task, play(task, replies)[0].state) == {}


def test_the_texts_are_the_templates_filled():
    task = TextDecPOMDP(
        opening="{agent}|{actions}|{horizon}",
        turn="{agent}|{observation}|{turn}|{horizon}|{{{actions}}}",
    )
    assert task.shown("agent_2", 0, None) == "agent_2|listen, open-left, open-right|3"
    expected = "agent_1|hear-right|2|3|{listen, open-left, open-right}"
    assert task.shown("agent_1", 1, 1) == expected


def test_words_rename_what_is_said_and_seen():
    words = {"listen": "be silent", "hear-left": "a growl on the left"}
    task = TextDecPOMDP(words=words, turn="{observation}")
    assert task.action_words("agent_1") == ("be silent", "open-left", "open-right")
    assert task.shown("agent_1", 1, 0) == "a growl on the left"
    assert play(task, [("be silent", "be silent")])[0].reward == -2
    assert play(task, [("listen", "be silent")])[0].done


def test_all_critics_are_told_the_turn_and_the_last_reward_and_a_central_one_the_hidden_state():
    task = TextDecPOMDP(reward_scale=0.1)
    start = state_of(task, "tiger-right", turn=0)
    assert task.global_info(start) == "turn 1 reward 0"
    assert task.privileged_info(start) == "state tiger-right"
    after = play(task, [("listen", "listen")])[0].state
    assert task.global_info(after) == "turn 2 reward -2"
    assert task.privileged_info(after) in ("state tiger-left", "state tiger-right")
    rejected = play(task, [("listen", "no word")])[0].state
    assert task.global_info(rejected).startswith("turn 2 reward -")


def test_legal_actions_are_drawn_alike():
    task, rng = TextDecPOMDP(), np.random.default_rng(0)
    drawn = [task.legal_action(None, "agent_1", rng) for _ in range(3000)]
    for word in task.action_words("agent_1"):
        assert abs(drawn.count(word) / 3000 - 1 / 3) < 0.03


WRONG = {
    "both sources": ({"problem": "vault", "file": "x"}, "task.problem, task.file: both are set"),
    "unknown problem": (
        {"problem": "volt"},
        "task.problem: unknown problem 'volt'; did you mean 'v",
    ),
    "no file": ({"file": "none.dpomdp", "horizon": 1}, "task.file: no file 'none.dpomdp'"),
    "file of no text": ({"file": 3, "horizon": 1}, "task.file: must be a path, got 3"),
    "file without horizon": ({"file": "x.dpomdp"}, "task.horizon: missing"),
    "no turns": ({"horizon": 0}, "task.horizon: must be a whole number, got 0"),
    "misspelt field": ({"opening": "{agnt}"}, "task.opening: unknown field '{agnt}'; did you mean"),
    "observation in the opening": ({"opening": "{observation}"}, "task.opening: unknown field"),
    "field without a name": ({"turn": "{}"}, "task.turn: unknown field '{}'"),
    "part of a field": ({"turn": "{agent.x}"}, "task.turn: unknown field '{agent.x}'"),
    "format of a field": ({"turn": "{agent:>9}"}, "task.turn: '{agent}' takes no format"),
    "single brace": ({"turn": "{agent"}, "write a literal brace twice"),
    "template of no text": ({"opening": 3}, "task.opening: must be text, got 3"),
    "unknown word": (
        {"words": {"lisen": "x"}},
        "'lisen' is no action or observation; did you mean",
    ),
    "one word for two actions": (
        {"words": {"listen": "open-left"}},
        "task.words: two actions of 'agent_1' read 'open-left'",
    ),
    "one word for two observations": (
        {"words": {"hear-left": "x", "hear-right": "x"}},
        "task.words: two observations of 'agent_1' read 'x'",
    ),
    "word of no text": ({"words": {"listen": 1}}, "task.words.listen: 1 must be text"),
    "word with space": ({"words": {"listen": "hark "}}, "task.words.listen: 'hark ' must be text"),
    "words in a list": ({"words": ["listen"]}, "task.words: must map names to texts"),
    "penalty in words": ({"penalty": "high"}, "task.penalty: must be a finite number, got 'high'"),
    "no scale": ({"reward_scale": 0}, "task.reward_scale: must be a number above 0, got 0"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_setting_is_one_line_that_names_it(kind):
    settings, named = WRONG[kind]
    with pytest.raises(ConfigError) as caught:
        TextDecPOMDP(**settings)
    assert named in str(caught.value) and "\n" not in str(caught.value)
