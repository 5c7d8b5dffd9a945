"""reasoning-gym's data sets: its own questions, answers and scores."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.reasoning_gym import ReasoningGym
from colearn.text.notes import note_once

gym = pytest.importorskip("reasoning_gym")
RNG = np.random.default_rng(0)
SUMS = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}


def say(task, text, number=0):
    state = task.reset(task.items("train")[number], RNG)
    return task.step(state, dict.fromkeys(task.agents, text), RNG)


@pytest.mark.parametrize("data", ["chain_sum", "sudoku"])
def test_data_sets_of_numbers_and_of_grids_pass_the_check(data):
    task = ReasoningGym(data, size=20, test_size=4)
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


def test_a_team_passes_the_check():
    task = ReasoningGym("chain_sum", size=20, test_size=4, agents=("draft", "final"))
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


@pytest.mark.parametrize("data", ["chain_sum", "sudoku"])
def test_the_packages_own_answer_solves_every_entry(data):
    task = ReasoningGym(data, size=20, test_size=4)
    for number, item in enumerate(task.items("train")):
        answer = task.privileged_info(task.reset(item, RNG))
        outcome = say(task, f"I think <answer> {answer} </answer>", number)
        assert outcome.reward == 1.0 and task.metrics(outcome.state)["solved"] == 1.0


def test_a_wrong_answer_earns_what_the_package_says():
    task = ReasoningGym("chain_sum", size=20, test_size=4)
    entries = gym.create_dataset("chain_sum", size=24, seed=task.source[3])
    theirs = entries.score_answer("-12345", entries[0])
    outcome = say(task, "<answer>-12345</answer>")
    assert outcome.reward == theirs < 1.0
    assert task.metrics(outcome.state) == {"score": theirs, "solved": 0.0}


def test_an_answer_outside_of_the_tags_earns_nothing():
    task = ReasoningGym("chain_sum", size=20, test_size=4)
    answer = task.privileged_info(task.reset(task.items("train")[0], RNG))
    assert say(task, answer).reward == 0.0


def test_without_tags_the_whole_text_is_the_answer():
    task = ReasoningGym("chain_sum", size=20, test_size=4, tagged=False)
    item = task.items("train")[0]
    assert item.prompt.text.endswith("=") and "<answer>" not in item.prompt.text
    assert say(task, task.privileged_info(task.reset(item, RNG))).reward == 1.0


def test_no_question_is_both_trained_on_and_tested_and_the_rest_is_counted(capsys):
    note_once.cache_clear()
    task = ReasoningGym("chain_sum", settings=SUMS, size=300, test_size=30)
    train, test = ({i.prompt.text for i in task.items(split)} for split in ("train", "test"))
    assert not train & test and len(task.items("train")) < 300
    kept, dropped = len(task.items("train")), 300 - len(task.items("train"))
    assert (
        f"{kept} rows to train on, {len(task.items('test'))} held out; {dropped} rows are not"
        in capsys.readouterr().err
    )


def test_another_seed_gives_other_entries():
    first, second = (ReasoningGym("chain_sum", size=20, test_size=4, seed=s) for s in (0, 1))
    assert first.items("train")[0].prompt.text != second.items("train")[0].prompt.text


def test_the_embedded_model_starts_from_answers_of_other_entries():
    task = ReasoningGym("chain_sum", size=20, test_size=4, tagged=False)
    state = task.reset(task.items("train")[0], RNG)
    answers = {task.privileged_info(task.reset(item, RNG)) for item in task.items("train")}
    drawn = {task.legal_action(state, "agent", RNG) for _ in range(50)}
    assert drawn <= answers and len(drawn) > 5


@pytest.mark.parametrize(
    "settings, line",
    [
        (
            {"data": "chain_sums"},
            r"task\.data: no data set 'chain_sums'; did you mean 'chain_sum'\?",
        ),
        ({"settings": {"terms": 2}}, r"task\.settings: .*terms"),
        ({"settings": {"min_terms": 0}}, r"task\.settings: .*; see 'chain_sum'"),
        ({"size": 0}, r"task\.size: must be a whole number"),
    ],
)
def test_a_wrong_setting_is_one_line(settings, line):
    with pytest.raises(ConfigError, match=line) as caught:
        ReasoningGym(**{"data": "chain_sum", **settings})
    assert "\n" not in str(caught.value)
