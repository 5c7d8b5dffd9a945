"""The code blocks of a page, and what its reader does with them, at a small price.

A config trains one iteration of two episodes, and a command runs on what the page's earlier blocks
have made. Models of the hub, and the warm starts of embedded models, are replaced by small
untrained models, and the servers that a page names by one that answers.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from scripted_endpoint import ScriptedEndpoint
from tiny import save_model

from colearn.config import load_config, shipped_configs
from colearn.errors import ConfigError, MissingExtra
from colearn.models.embedded_recipes import RECIPES
from colearn.training.restarts import run_with_restarts

_BLOCK = re.compile(
    r"^(?P<slow><!-- runs: slow -->\n+)?```(?P<language>[^\n]*)\n(.*?)^```$", re.M | re.S
)
_NAMED = ("task", "algorithm", "run.generator", "run.learner")
"""Sections that name what they configure: another name makes another section."""
SMALL = {
    "train.episodes": 2,
    "train.iterations": 1,
    "train.environment_steps": 1000,
    "evaluation.episodes": 1,
    "evaluation.every": 1000,
}
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
    slow: bool

    @property
    def file(self) -> str | None:
        """The name in a first line like `# picnic.py`."""
        header = re.match(r"# ([\w-]+\.(?:py|yaml))\n", self.text)
        return header[1] if header else None


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            fence["language"].strip(),
            fence[3],
            text[: fence.start(3)].count("\n") + 1,
            fence["slow"] is not None,
        )
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
    """A server that stands for each that a page names."""
    endpoint = ScriptedEndpoint(speak=lambda messages, seed: "7", owned_by="somebody")
    with endpoint.serving():
        yield endpoint.url


def small(data: dict[str, Any], url: str) -> dict[str, Any]:
    """The config at the price of one iteration; the server at `url` answers for every other."""
    del data["compare"]
    networks = [*data["models"].values(), *([data["critic"]] if data["critic"] else [])]
    for network in networks:
        path = network.get("path")
        if path is not None and path.partition(":")[0] not in RECIPES:
            network["path"] = _pretrained()
    if data["critic"]:
        data["critic"] |= {"epochs": None, "minibatch": None}
    for key, value in SMALL.items():
        section, _, name = key.partition(".")
        data[section][name] = value
    if not data["evaluation"]["pass_at"]:
        data["evaluation"]["repeats"] = 1
    for agent in data["agents"].values():
        if agent["endpoint"] is not None:
            agent["endpoint"] = url
        agent["sampling"]["max_tokens"] = min(4, agent["sampling"]["max_tokens"])
    rewards = data["task"].get("reward")
    for reward in rewards if isinstance(rewards, list) else [rewards]:
        if isinstance(reward, dict) and "url" in reward:
            reward["url"] = url
    return data


def train(data: Mapping[str, Any], out: Path) -> str:
    """Train; an empty text, or what this machine lacks for it."""
    if "vllm" in str(data["run"]["generator"]):
        return "a GPU"
    try:
        run_with_restarts(load_config(data), out)
    except MissingExtra:
        return "an extra that the tests do not install"
    except ConfigError as error:
        for pattern, lack in NOT_HERE.items():
            if re.search(pattern, str(error)):
                return lack
        raise
    return ""


def settings(words: list[str]) -> list[str]:
    """Options that make the run of a command small."""
    small = {**SMALL, "train.episodes": 16} if "train.record=true" in words else SMALL
    return [word for key, value in small.items() for word in ("--set", f"{key}={value}")]


def make_run(folder: Path) -> None:
    """The run that a page's commands are about, if the page itself has made none."""
    if folder.exists():
        return
    made = _folder() / "run"
    if not made.exists():
        config = load_config("quickstart").model_dump(mode="json")
        assert not train(small(config, ""), made)
    shutil.copytree(made, folder)


def untrained(monkeypatch: Any) -> None:
    """Makes embedded models without a warm start."""
    monkeypatch.setenv("COLEARN_CACHE", str(_folder() / "cache"))
    for name, recipe in RECIPES.items():
        monkeypatch.setitem(RECIPES, name, replace(recipe, steps=0, episodes=4))
