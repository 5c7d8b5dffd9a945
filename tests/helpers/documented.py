"""The code blocks of a page, and what its reader does with them, at a small price.

Every config that a page loads trains one iteration of two episodes with short answers, and a
command runs on what the page's earlier blocks have made. Models of the hub, and the warm starts of
embedded models, are replaced by small untrained models, and the servers that a page names by one
that answers.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted_endpoint import ScriptedEndpoint
from tiny import save_model

from colearn.config import Config, load, load_config, shipped_configs
from colearn.contract.testing import fresh_plays
from colearn.entry.python import compare, runs_here
from colearn.errors import ConfigError, MissingExtra
from colearn.models.embedded_recipes import RECIPES, is_embedded
from colearn.runs.report import plots
from colearn.training.restarts import run_with_restarts

_BLOCK = re.compile(r"^```(?P<language>[^\n]*)\n(.*?)^```$", re.M | re.S)
_NAMED = ("task", "algorithm", "run.generator", "run.learner")
"""Sections that name what they configure: another name makes another section."""
_ADDRESS = re.compile(r"https?://[\w.-]+:\d+")
SMALL = {
    "train": {"episodes": 2, "iterations": 1, "environment_steps": 1000},
    "evaluation": {"episodes": 1, "every": 1000},
}
RECORDED = 16
"""Number of episodes that a critic can be fitted to."""
BUILDING = ("house_build", "str_build")
"""Tasks whose default of four turns makes trees of 30 joint actions."""
NOT_HERE = {
    r"^placement": "several devices",
    r"^run.trackers: wandb does not start": "an account",
    r"^run.generator: on a CPU vLLM": "a GPU",
    r"^task.reward.path: cannot load": "a model of the hub",
    r"(critics/fitted): neither a folder": "what a slow command makes",
}
"""Errors that say what this machine lacks, and what they say of a block."""


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    """Of the first line of the text in its document."""

    @property
    def file(self) -> str | None:
        """The name in a first line like `# picnic.py`."""
        header = re.match(r"# ([\w-]+\.(?:py|yaml))\n", self.text)
        return header[1] if header else None


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [
        Block(fence["language"].strip(), fence[2], text[: fence.start(2)].count("\n") + 1)
        for fence in _BLOCK.finditer(text)
    ]


def config_of(block: Block, base: Mapping[str, Any] | None) -> dict[str, Any]:
    """The config of a block: a whole one, or changes to `base`, by default the quickstart."""
    data: dict[str, Any] = yaml.safe_load(block.text)
    if is_whole(block):
        return data
    if base is None:
        base = yaml.safe_load(shipped_configs()["quickstart"].read_text())
    changed = _changed({**base, "compare": {}}, data, "")
    assert isinstance(changed, dict)
    return changed


def is_whole(block: Block) -> bool:
    return {"task", "models"} <= set(yaml.safe_load(block.text))


def _changed(base: Any, changes: Any, path: str) -> Any:
    if not (isinstance(base, Mapping) and isinstance(changes, Mapping)):
        return changes
    if path in _NAMED and "name" in changes and changes["name"] != base.get("name"):
        return changes
    below = {
        key: _changed(base.get(key), value, f"{path}.{key}".lstrip("."))
        for key, value in changes.items()
    }
    return {**base, **below}


@cache
def _folder() -> Path:
    """For the models of one process of tests, and its run."""
    return Path(tempfile.mkdtemp(prefix="documented-"))


@cache
def _pretrained() -> str:
    folder = _folder() / "pretrained"
    config = Path(save_model(folder, merges=True)) / "config.json"
    long = json.loads(config.read_text()) | {"max_position_embeddings": 32768}
    config.write_text(json.dumps(long))
    return str(folder)


@contextmanager
def server() -> Iterator[str]:
    """A server that stands for each that a config of a page names."""
    endpoint = ScriptedEndpoint(speak=lambda messages, seed: "7", owned_by="somebody")
    with endpoint.serving():
        yield endpoint.url


def answered(block: Block, url: str) -> Block:
    """A config's block in which `url` stands for every server but those of vLLM, which no test of a
    page reaches."""
    if "vllm_server" in block.text:
        return block
    return replace(block, text=_ADDRESS.sub(url, block.text))


def small(config: Config) -> Config:
    """The config at the price of one iteration."""
    data = config.model_dump(mode="json")
    networks = [*data["models"].values(), *([data["critic"]] if data["critic"] else [])]
    for network in networks:
        path = network.get("path")
        if path is not None and not is_embedded(path) and not Path(path).is_dir():
            network["path"] = _pretrained()
    if data["critic"]:
        data["critic"] |= {"epochs": None, "minibatch": None}
    for section, changes in SMALL.items():
        data[section] |= changes
    if data["train"]["record"]:
        data["train"]["episodes"] = RECORDED
    if data["task"]["name"] in BUILDING:
        data["task"]["horizon"] = min(2, data["task"].get("horizon", 2))
    if not data["evaluation"]["pass_at"]:
        data["evaluation"]["repeats"] = 1
    for agent in data["agents"].values():
        agent["sampling"]["max_tokens"] = min(4, agent["sampling"]["max_tokens"])
    return Config.model_validate(data)


def train(config: Config, out: Path) -> str:
    """Train; an empty text, or what this machine lacks for it."""
    if "vllm" in str(config.run.generator):
        return "a GPU"
    try:
        run_with_restarts(config, out)
    except MissingExtra:
        return "an extra that the tests do not install"
    except ConfigError as error:
        for pattern, lack in NOT_HERE.items():
            if re.search(pattern, str(error)):
                return lack
        raise
    return ""


def make_run(folder: Path) -> None:
    """The run that a page's commands are about, if the page itself has made none."""
    if folder.exists():
        return
    made = _folder() / "run"
    if not made.exists():
        assert not train(load_config("quickstart"), made)
    shutil.copytree(made, folder)


def at_a_small_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process load every config small, make embedded models without a warm start, and
    train what it compares itself. Reports have no drawings, and checks start no fresh processes;
    both have tests of their own."""
    validated, compared = load._validated, compare.run_comparison

    def _small(cls: Any, data: dict[str, Any], overrides: Sequence[str]) -> Any:
        settings = validated(cls, data, overrides)
        return small(settings) if isinstance(settings, Config) else settings

    def _compared(config: Config, out: Path, **_: Any) -> Path:
        return compared(config, out, make=runs_here.make_here)

    monkeypatch.setattr(load, "_validated", _small)
    monkeypatch.setattr(compare, "run_comparison", _compared)
    monkeypatch.setattr(fresh_plays, "HASH_SEEDS", ())
    monkeypatch.setattr(plots, "svg_of", lambda figure: "<svg/>")
    monkeypatch.setattr(plots, "write_files", lambda figure, svg, path: None)
    monkeypatch.setenv("COLEARN_CACHE", str(_folder() / "cache"))
    for name, recipe in RECIPES.items():
        monkeypatch.setitem(RECIPES, name, replace(recipe, steps=0, episodes=4))
