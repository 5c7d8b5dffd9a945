"""Rows of data as a task: prompts, teams, and rewards with TRL's signature."""

from __future__ import annotations

import json

import numpy as np
import pytest

from colearn.config import build_task, load_config
from colearn.contract import SampledAction
from colearn.contract.testing import check_task
from colearn.contract.types import Action
from colearn.errors import ConfigError, DataNotHere
from colearn.registry import without_own_code
from colearn.tasks.dataset import Dataset
from tests.helpers.reward_functions import SEEN

RNG = np.random.default_rng(0)
ROWS = [{"prompt": f"paint {k}", "colour": c} for k, c in enumerate(("red", "blue") * 5)]
MATCHES = "tests.helpers.reward_functions:matches"


def mine(name):
    return f"tests.helpers.reward_functions:{name}"


@pytest.fixture
def data(tmp_path):
    def write(rows=ROWS, name="train.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return str(path)

    return write


def play(task, *stages, item=0):
    """The last outcome of an episode in which each stage's agents say the given texts."""
    state = task.reset(task.items("train")[item], RNG)
    for said in stages:
        asked = {a for a in task.agents if task.observe(state, a) is not None}
        assert asked == set(said)
        outcome = task.step(state, said, RNG)
        state = outcome.state
    return outcome


def test_a_team_passes_the_check(data):
    task = Dataset(data(), MATCHES, agents=("draft", "final"), words=("red", "blue"))
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


def test_a_tenth_is_held_out(data):
    task = Dataset(data(), MATCHES)
    (held_out,) = (item.prompt.text for item in task.items("test"))
    trained = [item.prompt.text for item in task.items("train")]
    assert trained == [f"paint {n}" for n in range(10) if f"paint {n}" != held_out]


def test_a_file_of_its_own_is_held_out_as_a_whole(data):
    task = Dataset(data(), MATCHES, test_path=data(ROWS[:3], "test.jsonl"))
    assert len(task.items("train")) == 10 and len(task.items("test")) == 3


def test_names_alone_read_all_answers_before_them(data):
    task = Dataset(data(), MATCHES, agents=("one", "two", "three"))
    state = task.reset(task.items("train")[0], RNG)
    state = task.step(state, {"one": "{prompt} {x}"}, RNG).state
    state = task.step(state, {"two": "b"}, RNG).state
    assert task.observe(state, "three").text == "paint 0\n\none: {prompt} {x}\n\ntwo: b"


def test_agents_that_read_nobody_act_at_the_same_time(data):
    agents = {"one": "{prompt}", "two": "{prompt} too", "last": "{one} or {two}?"}
    task = Dataset(data(), MATCHES, agents=agents)
    assert task.horizon == 2
    outcome = play(task, {"one": "x", "two": "y"}, {"last": "red"})
    assert outcome.reward == 1.0 and outcome.done


def test_the_answer_is_the_chosen_agents(data):
    agents = {"one": "{prompt}", "two": "{prompt}"}
    task = Dataset(data(), MATCHES, agents=agents, answer="one")
    assert play(task, {"one": "red", "two": "blue"}).reward == 1.0


def test_weights_add_up_several_functions(data):
    task = Dataset(data(), [MATCHES, mine("later")], weights=(2.0, 10.0))
    outcome = play(task, {"agent": "red"})
    assert outcome.reward == 2.0 * 1.0 + 10.0 * 0.5
    assert task.metrics(outcome.state) == {
        "reward": 7.0,
        "reward_matches": 1.0,
        "reward_later": 0.5,
    }


def test_a_team_that_is_cut_before_its_answer_measures_nothing(data):
    task = Dataset(data(), MATCHES, agents=("draft", "final"))
    state = task.reset(task.items("train")[0], RNG)
    state = task.step(state, {"draft": "red"}, RNG).state
    assert set(task.metrics(state).values()) == {None}
    state = task.step(state, {"final": "red"}, RNG).state
    assert None not in task.metrics(state).values()


def test_the_sampled_ids_are_the_completion_ids(data):
    said = SampledAction(Action("red", (4, 5, 6)))
    assert play(Dataset(data(), mine("length")), {"agent": said}).reward == 3 + 300.0


def test_an_agents_own_function_reads_its_own_answer(data):
    reward = {"team": MATCHES, "draft": mine("matches")}
    task = Dataset(data(), reward, agents=("draft", "final"))
    outcome = play(task, {"draft": "red"}, {"final": "blue"})
    assert (outcome.reward, outcome.local_rewards) == (0.0, {"draft": 1.0})
    assert task.pays == {"team", "local"}


def test_a_function_may_read_the_whole_team(data):
    task = Dataset(data(), mine("first_word"), agents=("one", "two"))
    assert play(task, {"one": "yes"}, {"two": "no"}).reward == 1.0


def test_messages_are_a_system_text_earlier_turns_and_the_last_text(data):
    prompt = [
        {"role": "system", "content": "Paint."},
        {"role": "user", "content": "hill"},
        {"role": "assistant", "content": "red"},
        {"role": "user", "content": "barn"},
    ]
    task = Dataset(data([{"prompt": prompt}] * 2), mine("looks"))
    shown = task.observe(task.reset(task.items("train")[0], RNG), "agent")
    assert (shown.system, shown.turns, shown.text) == ("Paint.", (("hill", "red"),), "barn")
    SEEN.clear()
    play(task, {"agent": "blue"})
    prompts, completions, _ = SEEN[0]
    assert prompts == [prompt]
    assert completions == [[{"role": "assistant", "content": "blue"}]]


def test_a_function_gets_every_other_column_as_a_list(data):
    task = Dataset(
        data([{"question": "q", "n": 3, "completion": "x"}] * 2), mine("looks"), prompt="question"
    )
    SEEN.clear()
    play(task, {"agent": "a"})
    columns = SEEN[0][2]
    assert (columns["n"], columns["question"]) == ([3], ["q"]) and "completion" not in columns


def test_csv_columns_are_numbers_where_all_their_fields_are(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text('prompt,n,x,flag,name\n"a, b",1,0.5,true,1\nc,2,,FALSE,two\n')
    task = Dataset(str(path), MATCHES)
    [item, last] = (*task.items("train"), *task.items("test"))
    assert (item.prompt.text, dict(item.columns)) == (
        "a, b",
        {"n": 1, "x": 0.5, "flag": True, "name": "1"},
    )
    assert type(item.columns["n"]) is int and last.columns["x"] is None


def test_a_row_is_named_by_file_and_line(data):
    path = data([ROWS[0], {"question": "x"}])
    with pytest.raises(
        ConfigError, match=r"task.prompt: line 2 of .*train.jsonl has question; 'prompt'"
    ):
        Dataset(path, MATCHES).items("train")


@pytest.mark.parametrize(
    "row, line",
    [
        (3, "task.path: line 2 of .* is no object"),
        ({"prompt": 3}, "'prompt' of line 2 of .* is neither text nor messages"),
        ({"prompt": " "}, "'prompt' of line 2 of .* is neither text nor messages"),
    ],
)
def test_a_row_that_is_no_prompt_is_one_line(data, row, line):
    with pytest.raises(ConfigError, match=line) as caught:
        Dataset(data([ROWS[0], row]), MATCHES).items("train")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, line",
    [
        ("prompt,a\nx\n", "has 1 fields in line 2 and 2 in its header; quote"),
        ('prompt\n"x\n', "is not valid CSV in line 2 .unexpected end of data.; fix the quotes"),
        ("prompt\n", "holds no rows"),
    ],
)
def test_a_broken_csv_is_named_by_its_line(tmp_path, text, line):
    path = tmp_path / "train.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=line):
        Dataset(str(path), MATCHES).items("train")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_file_that_is_not_there_is_one_line(tmp_path, name):
    with pytest.raises(DataNotHere, match=r"task\.path: cannot read .*a"):
        Dataset(str(tmp_path / name), MATCHES).items("train")


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"reward": "accuracy"}, "task.reward.name: unknown reward 'accuracy'"),
        ({"reward": "a b:c"}, "task.reward.target: 'a b:c' is no module:function"),
        ({"reward": 3}, "task.reward: 3 names no function"),
        ({"reward": {"agent": MATCHES}}, "task.reward: name a function of the team under 'team'"),
        ({"reward": {"nobody": MATCHES}}, "task.reward: no agent 'nobody'; there is agent"),
        ({"reward": {"name": 3}}, "task.reward: .* names no function; write module:function"),
        (
            {"reward": {"team": "own:all_words", "all": "own:words"}, "agents": ("all",)},
            "task.reward: two functions report 'reward_all_words'; rename one of them",
        ),
        ({"weights": (1.0, 2.0)}, "task.weights: 2 weights for 1 functions"),
        ({"agents": ()}, "task.agents: name at least one agent"),
        ({"agents": ("a b",)}, "task.agents: 'a b' must be an identifier"),
        ({"agents": ("a", "a")}, "task.agents: names an agent twice"),
        ({"agents": {"a": "{b}"}}, "task.agents.a: unknown field '{b}'"),
        ({"agents": {"a": "{prompt:>9}"}}, "task.agents.a: unknown field '{prompt}'"),
        ({"agents": {"a": "{"}}, "task.agents.a: .*; write a literal brace twice"),
        ({"agents": {"a": "{b}", "b": "{a}"}}, "task.agents: a, b wait for each other"),
        ({"answer": "b"}, "task.answer: no agent 'b'; there is agent"),
        ({"words": {"b": ("x",)}}, "task.words: no agent 'b'"),
        ({"test_share": 1.0}, "task.test_share: must lie between 0 and 1"),
    ],
)
def test_a_wrong_setting_is_named(data, settings, line):
    with pytest.raises(ConfigError, match=line) as caught:
        Dataset(data(), **{"reward": MATCHES, **settings})
    assert "\n" not in str(caught.value)


def test_nothing_is_imported_before_the_first_reward(data):
    task = Dataset(data(), "nowhere.at_all:function")
    assert len(task.items("train")) == 9
    with pytest.raises(ConfigError, match=r"no module 'nowhere' for 'nowhere\.at_all:function'"):
        play(task, {"agent": "red"})


def test_a_config_that_is_only_read_names_no_code_of_its_own(data):
    config = load_config(
        {
            "task": {"name": "dataset", "path": data(), "reward": MATCHES},
            "algorithm": {"name": "grpo"},
            "models": {"*": {"path": "embedded-tiny"}},
        }
    )
    assert isinstance(build_task(config), Dataset)
    with without_own_code(), pytest.raises(ConfigError, match="code of its own, which reading"):
        build_task(config)
