"""Agents in Python: their tokens are the server's, and their metrics the trainer's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from exported import export_tiny, serving_here
from tiny import register, save_model

import colearn
from colearn.config import load_config
from colearn.contract import View
from colearn.deploy.export import export_run
from colearn.entry.python.result import Result
from colearn.errors import ConfigError
from colearn.runs.record import RunFolder, read_run
from colearn.training.loop import Experiment

SAID = ["hello", "and then?", "go on, please"]
TALK = [
    {"role": "system", "content": "answer in one word"},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "yes"},
    {"role": "user", "content": "go on"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tiny(tmp_path_factory.mktemp("agents") / "ada", end_scale=1)


def test_it_answers_as_the_server_does_in_a_session_and_without_one(folder: Path) -> None:
    ada = colearn.load_agent(folder, device="cpu")
    mine = [ada.act(text, seed=number).tokens for number, text in enumerate(SAID)]
    alone = ada.chat(TALK, seed=7).tokens
    with serving_here(folder) as server:

        def asked(seed: int, messages: list[dict[str, str]], **more: Any) -> tuple[int, ...]:
            body = {"messages": messages, "seed": seed, "return_token_ids": True, **more}
            answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).json()
            return tuple(answer["choices"][0]["token_ids"])

        theirs = [
            asked(number, [{"role": "user", "content": text}], session_id="one")
            for number, text in enumerate(SAID)
        ]
        assert mine == theirs
        assert alone == asked(7, TALK)


def test_a_reset_begins_again_and_a_chat_leaves_the_history_alone(folder: Path) -> None:
    ada = colearn.load_agent(folder, device="cpu")
    first = [ada.act(text, seed=5).text for text in SAID]
    ada.reset()
    again = []
    for text in SAID:
        ada.chat(TALK)
        again.append(ada.act(text, seed=5).text)
    assert first == again
    assert first[1] != ada.act(SAID[1], seed=5).text  # the history counts


def test_what_the_server_refuses_is_one_line(folder: Path) -> None:
    ada = colearn.load_agent(folder, device="cpu")
    with pytest.raises(ConfigError, match="ada: the last message must be the user's"):
        ada.chat(TALK[:3])
    with pytest.raises(ConfigError, match=r"ada: 'messages\.0\.role': "):
        ada.chat([{"role": "nobody", "content": "x"}])
    with pytest.raises(ConfigError, match="ada: messages: Object of type set is not JSON"):
        ada.chat([{"role": "user", "content": {"x"}}])
    with pytest.raises(ConfigError, match=r"ada: \d+ tokens leave no room .* call reset\(\)"):
        ada.act("x" * ada.context)


def test_an_exported_agent_of_another_name_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="holds the agent 'ada', not 'ben'"):
        colearn.load_agent(folder, "ben", device="cpu")
    with pytest.raises(ConfigError, match="no agent 'ad'; did you mean 'ada'"):
        colearn.load_agent(folder.parent, "ad", device="cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two agents of different weights, whose role prompts differ."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        models = {
            agent: {
                "path": save_model(tmp_path_factory.mktemp(agent), seed=seed),
                "learning_rate": 3e-2,
            }
            for seed, agent in enumerate(("ada", "ben"))
        }
        config = {
            "task": {"name": "notes", "horizon": 2, "items": 3},
            "algorithm": {"name": "mareinforce"},
            "models": models,
            "agents": {
                agent: {"system": f"You are {agent}.", "sampling": {"max_tokens": 6}}
                for agent in models
            },
            "train": {"environment_steps": 12, "episodes": 2},
            "run": {"device": "cpu"},
        }
        folder = tmp_path_factory.mktemp("runs") / "run"
        Experiment(load_config(config), folder).run()
        yield folder


def test_a_run_whose_agent_is_not_named_is_refused_before_anything_is_exported(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colearn.deploy.loaded.export_run", lambda *_, **__: pytest.fail("export"))
    with pytest.raises(ConfigError, match=r"run: name one of its agents: ada, ben$"):
        colearn.load_agent(run)
    with pytest.raises(ConfigError, match="run: no agent 'beni'; did you mean 'ben'"):
        colearn.load_agent(run, "beni")


@dataclass(frozen=True)
class Silent:
    """A program with nothing to say."""

    def act(self, view: View) -> str:
        return "nothing"


def test_a_team_of_one_model_and_a_program_has_one_agent(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        patch.setitem(sys.modules, "silent", sys.modules[__name__])
        config = {
            "task": {"name": "notes", "horizon": 1, "items": 3},
            "algorithm": {"name": "untrained"},
            "models": {"ada": {"path": save_model(tmp_path / "model")}},
            "agents": {
                "ada": {"model": "ada", "sampling": {"max_tokens": 6}},
                "ben": {"program": {"name": "silent:Silent"}},
            },
            "train": {"environment_steps": 2, "episodes": 2},
            "run": {"device": "cpu"},
        }
        Experiment(load_config(config), tmp_path / "run").run()
        assert colearn.load_agent(tmp_path / "run", device="cpu").name == "ada"
        with pytest.raises(ConfigError, match="no agent 'ben'"):
            colearn.load_agent(tmp_path / "run", "ben")
        (exported,) = export_run(tmp_path / "run", tmp_path / "team").values()
        assert "trained together with `ben`" in (exported / "README.md").read_text()


def test_one_agent_of_a_run_or_of_an_exported_team_is_named(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "team", agents=["ben"])
    assert [one.name for one in (tmp_path / "team").iterdir()] == ["ben"]
    kept = colearn.load_agent(tmp_path / "team", "ben", device="cpu")
    fresh = colearn.load_agent(run, "ben", device="cpu")
    assert kept.act("build", seed=3).tokens == fresh.act("build", seed=3).tokens


def test_agents_are_evaluated_as_their_run_evaluates_them(run: Path, tmp_path: Path) -> None:
    """Sampled and greedy, on both splits, from the run and from the exported folder."""
    export_run(run, tmp_path / "team")
    task = {"name": "tiny:Notes", "horizon": 2, "items": 3}
    result = Result(read_run(RunFolder(run)))
    sampled = timeless(result.evaluate(split="test"))
    assert timeless(colearn.evaluate(task, run, device="cpu", split="test")) == sampled
    other = colearn.evaluate(task, run, device="cpu", split="test", seed=7)
    assert timeless(other) != sampled
    greedy = {"split": "train", "episodes": 5, "greedy": True}
    got = colearn.evaluate(task, tmp_path / "team", device="cpu", **greedy)
    assert timeless(got) == timeless(result.evaluate(**greedy))


def timeless(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if name != "response_seconds"}


def test_a_team_without_an_agent_for_a_seat_is_not_evaluated(folder: Path) -> None:
    task = {"name": "tiny:Notes", "horizon": 2, "items": 3}
    with pytest.raises(ConfigError, match="no agent 'ben'"):
        colearn.evaluate(task, folder.parent, device="cpu")
    with pytest.raises(ConfigError, match="agents: none for the task's 'ada'; load one for each"):
        colearn.evaluate(task, {})
    with pytest.raises(ConfigError, match=r"agents\.eda: .* no such agent; did you mean 'ada'"):
        colearn.evaluate(task, {"eda": colearn.load_agent(folder, device="cpu")})
    with pytest.raises(ConfigError, match=r"evaluation\.splt: "):
        colearn.evaluate(task, folder.parent, splt="train")
    with pytest.raises(ConfigError, match="exact: agents without their run are sampled"):
        colearn.evaluate(task, folder.parent, exact=True)
