"""Debates and conversations about one answer: who reads what, what ends and pays."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.debate import AssistantTeam, Debate, Solver
from colearn.tasks.math_duo import MathDuo

RNG = np.random.default_rng(0)


def play(task, *said):
    """Says one thing at each turn, whoever is asked; (role, prompt) of all turns and the end."""
    state, asked, reward = task.reset(task.items("test")[0], RNG), [], 0.0
    for text in said:
        ((role, prompt),) = joint_observations(task, state).items()
        asked.append((role, prompt))
        outcome = task.step(state, {role: text}, RNG)
        state, reward = outcome.state, reward + outcome.reward
    return asked, outcome.done, reward, task.metrics(state)


def truth(task):
    return f"#### {task.items('test')[0].answer:g}"


@pytest.mark.parametrize(
    ("team", "subject"), [(Debate, "math"), (AssistantTeam, "qa"), (Solver, "math")]
)
def test_every_team_keeps_the_contract(team, subject):
    check_task(team(subject=subject, train=4, test=4), seeds=(0,), episodes=1)


def test_a_solver_answers_once_and_is_graded():
    task = Solver(train=4, test=4)
    assert (task.agents, task.horizon) == (("solver",), 1)
    asked, done, reward, metrics = play(task, truth(task))
    assert task.items("test")[0].question in asked[0][1].text and done and reward == 1.0
    assert metrics == {"correct": 1.0, "answered": 1.0, "rounds": 1.0}
    assert play(task, "no number")[2:] == (0.0, {"correct": 0.0, "answered": 0.0, "rounds": 1.0})


def test_the_negative_side_reads_the_claim_and_the_judge_both():
    task = Debate(train=4, test=4)
    asked, done, _, _ = play(task, "I say #### 1", "I deny it", "open")
    assert [role for role, _ in asked] == ["affirmative", "negative", "judge"]
    assert "I say" in asked[1][1].text
    assert "I say" in asked[2][1].text and "I deny it" in asked[2][1].text
    assert not done


def test_a_judge_who_names_an_answer_ends_the_debate_and_is_graded():
    task = Debate(train=4, test=4)
    _, done, reward, metrics = play(task, "a", "b", f"the first\n{truth(task)}")
    assert done and reward == 1.0
    assert metrics == {"correct": 1.0, "answered": 1.0, "rounds": 1.0}
    assert play(task, "a", "b", "#### 0.123")[1:3] == (True, 0.0)


def test_debaters_go_on_in_their_own_history_and_the_last_verdict_counts():
    task = Debate(train=4, test=4)
    asked, done, reward, metrics = play(task, "a", "b", "open", "c", "d", truth(task))
    assert [role for role, _ in asked][3:] == ["affirmative", "negative", "judge"]
    assert [prompt.fresh for _, prompt in asked] == [True, True, True, False, False, True]
    assert "b" in asked[3][1].text.splitlines() and "c" in asked[4][1].text.splitlines()
    assert done and reward == 1.0 and metrics["rounds"] == 2.0


def test_a_debate_without_a_verdict_earns_nothing():
    task = Debate(rounds=1, train=4, test=4)
    _, done, reward, metrics = play(task, "a", truth(task), "I cannot say")
    assert done and reward == 0.0 and metrics["answered"] == 0.0


def test_the_proxy_ends_the_conversation_and_the_assistants_answer_counts():
    task = AssistantTeam(train=4, test=4)
    asked, done, reward, metrics = play(task, truth(task), "TERMINATE")
    assert [role for role, _ in asked] == ["assistant", "proxy"]
    assert done and reward == 1.0 and metrics["rounds"] == 1.0


@pytest.mark.parametrize("said", ["It is right.\n\nTERMINATE", "**TERMINATE**\n", "TERMINATE."])
def test_the_word_alone_on_the_last_line_ends_the_conversation(said):
    task = AssistantTeam(train=4, test=4)
    asked, done, _, _ = play(task, truth(task), said)
    assert len(asked) == 2 and done


@pytest.mark.parametrize(
    "said",
    [
        "Do not TERMINATE yet: look at the sign",
        "I will not write TERMINATE",
        "TERMINATE\nNo, look at the sign",
        "DETERMINATE",
        "terminate",
    ],
)
def test_a_proxy_that_only_mentions_the_word_goes_on(said):
    task = AssistantTeam(train=4, test=4)
    asked, done, reward, _ = play(task, "#### 0.5", said, truth(task))
    assert len(asked) == 3 and done and reward == 1.0


def test_an_assistant_answers_again_in_its_own_history():
    task = AssistantTeam(train=4, test=4)
    asked, done, reward, _ = play(task, "#### 0.5", "look at the sign", truth(task))
    assert not asked[2][1].fresh and "look at the sign" in asked[2][1].text
    assert done and reward == 1.0


def test_words_are_compared_as_they_are_normalised():
    task = Debate(subject="qa", rounds=1)
    gold = task.items("test")[0].answers[0]
    assert play(task, "a", "b", f"#### The {gold.upper()}.")[2] == 1.0
    assert play(task, "a", "b", f"#### not {gold}")[2] == 0.0


def test_a_setting_that_cannot_be_is_one_line():
    with pytest.raises(ConfigError, match="subject"):
        Debate(subject="music")
    with pytest.raises(ConfigError, match="rounds"):
        AssistantTeam(rounds=0)


AIME = [{"problem": f"What is {k} + 1?", "answer": str(k + 1)} for k in range(30)]
GSM8K = {
    "train": [{"question": f"Train {k}?", "answer": f"so #### {k}"} for k in range(40)],
    "test": [{"question": f"Test {k}?", "answer": f"so #### {k}"} for k in range(13)],
}


@pytest.fixture
def hub(monkeypatch):
    """AIME's problems, GSM8K's two splits, and what was asked for."""
    asked = []

    def load_dataset(*names, split):
        asked.append((*names, split))
        if "amc" in names[0]:
            return [{"question": "Half of 54?", "answer": "27.0"}]
        return GSM8K[split] if "gsm8k" in names[0] else AIME

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    return asked


@pytest.mark.parametrize("team", [Debate, AssistantTeam, MathDuo])
def test_all_thirty_problems_of_aime_are_tested(team, hub):
    task = team(test_data="aime24", train=4)
    assert [str(item) for item in task.items("test")] == [row["problem"] for row in AIME]
    assert len(task.items("train")) == 4
    assert hub == [("HuggingFaceH4/aime_2024", "train")]


@pytest.mark.parametrize(
    ("data", "asked"), [("amc23", "math-ai/amc23"), ("math500", "HuggingFaceH4/MATH-500")]
)
def test_the_other_benchmarks_of_marshal_are_tested_on_their_test_splits(data, asked, hub):
    task = Solver(test_data=data, train=4)
    assert hub == [(asked, "test")]
    if data == "amc23":
        (problem,) = task.items("test")
        assert (str(problem), problem.answer) == ("Half of 54?", 27.0)


@pytest.mark.parametrize("team", [Debate, AssistantTeam, MathDuo])
def test_gsm8k_is_tested_on_its_official_test_split(team, hub):
    task = team(data="gsm8k")
    assert [len(task.items(split)) for split in ("train", "test")] == [40, 13]
    assert hub == [("openai/gsm8k", "main", "train"), ("openai/gsm8k", "main", "test")]


@pytest.mark.parametrize(("team", "data"), [(Debate, "aime24"), (MathDuo, "gsm8k_test")])
def test_a_test_split_is_not_trained_on(team, data, hub):
    with pytest.raises(ConfigError, match=f"^task.data: '{data}' is a test split; set task.test_d"):
        team(data=data)
    assert hub == [], "nothing is fetched to say so"


def test_questions_of_another_set_are_tested_whole(tmp_path):
    rows = [{"question": f"Who is {k}?", "answers": [str(k)]} for k in range(10)]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    task = Debate(subject="qa", test_data=str(path))
    assert sorted(str(item) for item in task.items("test")) == sorted(r["question"] for r in rows)
    assert task.items("train") and not set(task.items("train")) & set(task.items("test"))
    with pytest.raises(ConfigError, match=r"holds all of task\.data; name another set to train on"):
        Debate(subject="qa", data=str(path), test_data=str(path))
