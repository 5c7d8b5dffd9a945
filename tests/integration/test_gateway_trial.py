"""`colearn gateway`: a program that the user starts plays with agents that are not trained."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time

import httpx
import pytest

from colearn.config import EvaluationSettings
from colearn.deploy.play.trial import Trial
from colearn.errors import ConfigError
from tests.helpers.gateway_programs import gateway, opened
from tests.helpers.scripted_voice import scripted_players


def trial(tmp_path, task=None, **settings):
    players, _ = scripted_players(("one", "two"), "yes")
    task = task or gateway("relay")
    settings = {"timeout": 20.0, "out": tmp_path / "episodes.jsonl", **settings}
    return Trial(task, players, EvaluationSettings(), seed=0, **settings)


def variables(printed):
    """The last episode's `export` lines."""
    exports = [line[7:].split("=", 1) for line in printed.splitlines() if line[:7] == "export "]
    return {name: value.strip("'") for name, value in exports}


class Screen:
    """What the trial has printed so far."""

    def __init__(self, capsys):
        self.capsys, self.text = capsys, ""

    def until(self, word):
        ends = time.monotonic() + 600
        while word not in self.text:
            assert time.monotonic() < ends, self.text
            time.sleep(0.01)
            self.text += self.capsys.readouterr().out


def say(url, text):
    body = {"messages": [{"role": "user", "content": text}]}
    return httpx.post(f"{url}/chat/completions", json=body, timeout=600).json()


def test_a_program_started_by_hand_is_answered_and_its_rewards_are_recorded(tmp_path, capsys):
    screen = Screen(capsys)

    def program():
        screen.until("COLEARN_END_URL=")
        given = variables(screen.text)
        answer = say(given["COLEARN_URL_ONE"], "hello")
        assert answer["choices"][0]["message"]["content"] == "yes"
        httpx.post(given["COLEARN_REWARD_URL"], json={"value": 2.0})
        httpx.post(given["COLEARN_END_URL"], json={"result": 1.5})

    hand = threading.Thread(target=program)
    hand.start()
    trial(tmp_path).play(1)
    hand.join()
    assert "# reward 3.5, 1 requests, 0 continued" in capsys.readouterr().out
    (line,) = (tmp_path / "episodes.jsonl").read_text().splitlines()
    episode = json.loads(line)
    assert episode["item"] == "owl"
    assert episode["return"] == 3.5
    assert episode["turns"][0]["observations"] == {"one": "hello"}
    assert episode["turns"][0]["actions"] == {"one": "yes"}


def test_a_worker_gets_the_episodes_in_turn(tmp_path, capsys):
    screen, items = Screen(capsys), []

    def worker():
        screen.until("/next")
        url = screen.text.split("get their episodes at ")[1].split()[0]
        for _ in range(2):
            given = httpx.post(url, json={}, timeout=600).json()
            items.append(given["item"])
            say(given["endpoints"]["two"], "hello")
            httpx.post(given["end"], json={"result": 1.0})

    hand = threading.Thread(target=worker)
    hand.start()
    trial(tmp_path).play(2)
    hand.join()
    assert items == ["owl", "bee"]


def test_an_episode_that_is_played_by_its_urls_is_given_to_no_worker():
    task = opened(gateway("relay").by_hand(lambda given: None, 20.0))
    live = task.server.open("owl")
    asking = threading.Thread(target=say, args=(task.server.endpoints(live)["one"], "hello"))
    asking.start()
    live.wait(600.0)
    secret = task.server.hire().split("/")[-2]
    assert asyncio.run(task.server.next_episodes(secret, 1, 0.2)) == []
    live.close()
    asking.join()


def test_an_interrupt_ends_the_trial_while_it_waits(tmp_path, capsys):
    screen = Screen(capsys)

    def interrupt():
        screen.until("COLEARN_END_URL=")
        os.kill(os.getpid(), signal.SIGINT)

    hand = threading.Thread(target=interrupt)
    hand.start()
    trial(tmp_path, timeout=600.0).play(None)
    hand.join()
    assert not (tmp_path / "episodes.jsonl").exists()


def test_a_trial_serves_on_the_port_that_its_task_had(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    task = gateway("relay", port=port)
    assert task.server.address == f"http://127.0.0.1:{port}"
    trial(tmp_path, task, timeout=0.2).play(1)
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 1


def test_another_task_is_refused(tmp_path):
    from colearn.registry import task_class

    with pytest.raises(ConfigError, match=r"^task: colearn gateway serves the task 'gateway'"):
        trial(tmp_path, task=task_class("str_build")())
