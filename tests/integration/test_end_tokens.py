"""Models with several end tokens: every id of the generation config ends an action."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from exported import export_tiny
from test_export import settings
from tiny import Notes, byte_tokenizer, register, save_model
from transformers import AutoModelForCausalLM, GenerationConfig

from colearn.config import load_config
from colearn.deploy.export import export_run
from colearn.deploy.serve.agent import ServedAgent
from colearn.errors import ConfigError
from colearn.models.load import load_end_ids
from colearn.rollout.agents import ChatFormat
from colearn.runs.record.checksums import write_checksums
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.processes import Processes

END = byte_tokenizer().eos_token_id


def frequent_ids(folder: str, count: int) -> list[int]:
    """The ids that the model writes most often, greedily, on the clues of the task."""
    model, chat = AutoModelForCausalLM.from_pretrained(folder), ChatFormat(byte_tokenizer())
    said: list[int] = []
    for clue in {clue for clues in Notes(items=12).clues for clue in clues}:
        prompt = torch.tensor([chat.open(clue).tokens])
        said += model.generate(prompt, do_sample=False, max_new_tokens=40)[
            0, prompt.shape[1] :
        ].tolist()
    counted = Counter(said)
    for token in byte_tokenizer().all_special_ids:
        counted.pop(token, None)
    return [token for token, _ in sorted(counted.items(), key=lambda e: (-e[1], e[0]))[:count]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[int]]:
    """A model folder whose generation config names the end token and three ids more."""
    folder = save_model(tmp_path_factory.mktemp("model"))
    ends = [END, *frequent_ids(folder, 3)]
    write_ends(Path(folder), ends)
    return folder, ends


@pytest.fixture(autouse=True)
def _notes(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, notes="tiny:Notes")


def write_ends(folder: Path, ends: Any) -> None:
    path = folder / "generation_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"eos_token_id": ends}))


def test_the_ids_are_those_that_transformers_reads(model: tuple[str, list[int]]) -> None:
    folder, ends = model
    loaded = AutoModelForCausalLM.from_pretrained(folder).generation_config.eos_token_id
    assert loaded == ends and load_end_ids(folder, field="test") == tuple(loaded)


def test_without_a_generation_config_the_ids_are_those_of_the_config(tmp_path: Path) -> None:
    folder = Path(save_model(tmp_path))
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": [5, 9]}))
    assert AutoModelForCausalLM.from_pretrained(folder).generation_config.eos_token_id == [5, 9]
    assert load_end_ids(str(folder), field="test") == (5, 9)


@pytest.mark.parametrize("ends", ["<|end|>", [1, -3], [True], 2.5])
def test_an_end_that_is_no_id_is_one_line_that_names_the_field(tmp_path: Path, ends: Any) -> None:
    folder = Path(save_model(tmp_path))
    write_ends(folder, ends)
    with pytest.raises(ConfigError, match=r"^models\.x\.path: .*eos_token_id"):
        load_end_ids(str(folder), field="models.x.path")


def test_greedy_answers_end_where_transformers_ends_them(model: tuple[str, list[int]]) -> None:
    """The same ids as `generate`, which reads the folder by itself; several ends are met."""
    folder, _ = model
    config = settings(folder, task={"name": "notes", "horizon": 1, "items": 12})
    config["agents"] = {"*": {"sampling": {"max_tokens": 40}}}
    parts = load_team(load_config(config, {"evaluation.greedy": True}))
    trees = evaluate_team(
        parts.run.task,
        parts.players,
        parts.run.config.evaluation,
        seed=0,
        credit=parts.run.parts.credit,
        cast=parts.run.cast,
        processes=Processes(torch.device("cpu")),
    ).trees
    causal = AutoModelForCausalLM.from_pretrained(folder)
    met = set()
    for tree in trees:
        for agent, action in tree.nodes[-1].actions.items():
            prompt = torch.tensor([tree.nodes[0].observations[agent].tokens])
            said = causal.generate(prompt, do_sample=False, max_new_tokens=40)
            assert action.tokens == tuple(said[0, prompt.shape[1] :].tolist())
            if action.finish == "end":
                met.add(action.tokens[-1])
    assert len(met) > 1


def test_the_export_keeps_every_end_and_serves_with_it(
    model: tuple[str, list[int]], tmp_path: Path
) -> None:
    folder, ends = model
    Experiment(load_config(settings(folder)), tmp_path / "run").run()
    written = export_run(tmp_path / "run", tmp_path / "out")["ada"]
    assert GenerationConfig.from_pretrained(written).eos_token_id == sorted(ends)
    agent = ServedAgent(written, device="cpu")
    assert agent.decoder.end_ids == agent.chat("Be brief.").end_ids == frozenset(ends)


def test_a_served_folder_ends_answers_by_its_generation_config(tmp_path: Path) -> None:
    folder = export_tiny(tmp_path / "ada")
    write_ends(folder, [END, 40])
    write_checksums(folder)
    assert ServedAgent(folder, device="cpu").decoder.end_ids == {END, 40}


def test_an_end_token_of_the_tokenizer_that_the_config_lacks_still_ends() -> None:
    chat = ChatFormat(byte_tokenizer(), model_end_ids=(40,))
    assert chat.end_ids == {END, 40} and chat.end_id == END
    assert chat.under("another role").end_ids == {END, 40}


def test_a_tokenizer_without_an_end_token_takes_the_models_first() -> None:
    tokenizer = byte_tokenizer(template="{% for m in messages %}[{{ m['content'] }}{% endfor %}")
    tokenizer.eos_token = None
    chat = ChatFormat(tokenizer, model_end_ids=(2, 40))
    assert chat.end_ids == {2, 40} and chat.end_id == 2
