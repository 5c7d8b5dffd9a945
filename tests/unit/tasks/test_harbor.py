"""Harbor tasks in the sandbox."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.harbor import Harbor
from colearn.tasks.harbor.task import HarborState, read_command
from tests.helpers.harbor_tasks import write_task

RNG = np.random.default_rng(0)


@pytest.fixture
def harbor(tmp_path):
    write_task(tmp_path / "one")
    return Harbor(str(tmp_path), words=("echo red > answer", "done"))


def played(task: Harbor, *commands: str):
    """The outcome of the last command."""
    state: HarborState = task.reset(task.items("train")[0], RNG)
    for number, command in enumerate(commands):
        agent = task.agents[number % len(task.agents)]
        outcome = task.step(state, {agent: command}, RNG)
        state = outcome.state
    return outcome


def paid_by(folder, script: str):
    write_task(folder / "one", test=f"#!/bin/bash\n{script}\n")
    outcome = played(Harbor(str(folder), horizon=1), "true")
    return outcome.reward, outcome.state.graded.reason


def test_a_harbor_folder_obeys_the_contract(tmp_path):
    write_task(tmp_path / "one")
    task = Harbor(str(tmp_path), horizon=1, words=("echo red > answer", "done"))
    check_task(task, actions=task.legal_action, seeds=(0,), episodes=1)


def test_folders_keep_their_modes(harbor):
    seen = played(harbor, "mkdir -m 750 x", "stat -c %a x")
    assert seen.state.commands[1].text == "750"


def test_the_verifier_pays_for_files_that_earlier_commands_left(harbor):
    outcome = played(harbor, "sh tools/say red > answer", "mv answer x", "mv x answer", "done")
    assert (outcome.reward, outcome.done) == (1.0, True)
    assert harbor.metrics(outcome.state) == {"reward": 1.0, "unverified": 0.0, "commands": 3.0}


def test_another_answer_earns_nothing(harbor):
    assert played(harbor, "echo blue > answer", "done").reward == 0.0


def test_the_horizon_ends_an_episode_like_done(tmp_path):
    write_task(tmp_path / "one")
    outcome = played(Harbor(str(tmp_path), horizon=1), "echo red > answer")
    assert (outcome.reward, outcome.done) == (1.0, True)


def test_agents_take_turns_and_read_the_commands_since_their_last(harbor):
    state = played(harbor, "echo one", "echo two; false", "echo three").state
    assert harbor.observe(state, "first") is None
    assert harbor.observe(state, "second") == (
        "second: echo two; false\ntwo\n[exit status 1]\nfirst: echo three\nthree"
    )


def test_a_first_turn_shows_the_instruction_and_what_the_others_did(harbor):
    text = harbor.observe(played(harbor, "echo one").state, "second")
    assert text == (
        "Write red into the file answer.\n\nThe working folder is /app. Answer with one shell "
        "command, or with `done`.\nfirst: echo one\none"
    )


def test_a_command_is_the_first_fenced_block_or_the_whole_answer():
    assert read_command("I list:\n```bash\nls\n```\nThen\n```\npwd\n```") == "ls"
    assert read_command("<think>a</think> ls -l\n") == "ls -l"


def test_branches_do_not_reach_each_other(harbor):
    state = played(harbor, "echo blue > answer").state
    one = harbor.step(state, {"second": "echo red > answer; cat answer"}, RNG).state
    two = harbor.step(state, {"second": "cat answer"}, RNG).state
    assert (one.commands[-1].text, two.commands[-1].text) == ("red", "blue")


def test_a_command_that_takes_too_long_is_stopped_and_its_files_stay(tmp_path):
    write_task(tmp_path / "one")
    task = Harbor(str(tmp_path), seconds=0.5)
    outcome = played(task, "echo red > answer; sleep 60", "done")
    assert outcome.state.commands[0].text == "[stopped after 0.5 seconds]"
    assert outcome.reward == 1.0


@pytest.mark.parametrize("command", ["kill -9 $PPID", "for n in $(seq 9000); do : > f$n; done"])
def test_a_command_that_ends_the_sandbox_leaves_the_files_as_they_were(harbor, command):
    outcome = played(harbor, "echo red > answer", command, "done")
    assert outcome.state.commands[1].text.startswith("[the sandbox ended: ")
    assert outcome.reward == 1.0


def test_tests_and_rewards_that_an_agent_writes_do_not_reach_the_verifier(harbor):
    forge = """echo '{"reward": 9}' > /logs/verifier/reward.json; echo > /tests/expected; """
    outcome = played(harbor, forge + "echo > answer; ls /logs/verifier /tests", "done")
    assert "reward.json" in outcome.state.commands[0].text
    assert outcome.reward == 0.0


def test_an_agent_reads_neither_the_tests_nor_this_machines_files(harbor):
    seen = played(harbor, "ls /tests; ls -d /root/* /home/* /work /proc 2> /dev/null | wc -l")
    assert seen.state.commands[0].text == "0"


def test_the_number_of_reward_json_counts_before_that_of_reward_txt(tmp_path):
    script = """cd /logs/verifier; echo 0.25 > reward.txt; echo '{"reward": 0.5}' > reward.json"""
    assert paid_by(tmp_path, script) == (0.5, "")


def test_without_a_number_in_reward_json_that_of_reward_txt_counts(tmp_path):
    script = """cd /logs/verifier; echo 0.25 > reward.txt; echo '{"tests": 3}' > reward.json"""
    assert paid_by(tmp_path, script) == (0.25, "")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("true", "tests/test.sh wrote no reward to /logs/verifier/reward.txt or reward.json"),
        ("echo nan > /logs/verifier/reward.txt", "reward.txt has no finite number"),
        (": > /logs/verifier/reward.txt", "reward.txt has no finite number"),
        ("echo '[1]' > /logs/verifier/reward.json", "reward.json has no JSON object"),
    ],
)
def test_without_a_number_the_reward_is_0_with_the_reason(tmp_path, script, reason):
    paid, said = paid_by(tmp_path, script)
    assert paid == 0.0
    assert said.startswith(reason)


def test_an_unverified_episode_is_counted(tmp_path):
    write_task(tmp_path / "one", test="true\n")
    task = Harbor(str(tmp_path), horizon=1)
    state = played(task, "true").state
    assert task.metrics(state)["unverified"] == 1.0
    assert (
        task.render(state)
        == "tests/test.sh wrote no reward to /logs/verifier/reward.txt or reward.json"
    )


def test_a_share_of_the_tasks_is_held_out(tmp_path):
    for number in range(10):
        write_task(tmp_path / f"t{number}")
    task = Harbor(str(tmp_path), test_share=0.2)
    names = {split: {item.name for item in task.items(split)} for split in ("train", "test")}
    assert (len(names["train"]), len(names["test"])) == (8, 2)
    assert not names["train"] & names["test"]


def test_a_time_limit_of_0_names_the_setting(tmp_path):
    with pytest.raises(ConfigError, match=r"^task\.seconds: must be a number above 0"):
        Harbor(str(tmp_path), seconds=0)
