"""Every fenced code block of README.md and docs/ runs, in order, in a folder of its own.

- `python` is executed, one namespace per file; a block that opens with `# name.py` is that file,
  and the functions of a `# test_name.py` are called.
- `yaml` is a config, or changes to the quickstart, and trains one small iteration (`documented`);
  with `# name.yaml` it is that file, and trains with the page's `colearn train name.yaml`.
- `toml` that names entry points registers them.
- `bash` and `console`: each `colearn` line must parse; those that list, check, train, resume,
  evaluate, report, export, serve or play are executed on what the page's earlier commands made, or
  on a run of one iteration, and so is `cd` into a folder that one of them wrote. Others stay with
  their reason: comparisons and studies take minutes, and some need the hub or other machines.

Every config is made small as it is loaded (`documented.small`), whatever loads it. The summary of
the tests counts the blocks that ran.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import documented
import documented_servers
import pytest
import typer
import yaml
from documented import Block, blocks_of

import colearn.registry
from colearn.config import load_config
from colearn.config.parts import KINDS, part_class
from colearn.contract import Advantage, Credit, Critic, PolicyLoss, Rollout, ValueLoss
from colearn.entry.cli import app, main
from colearn.registry import lookup
from colearn.runs.comparison.plan import make_plan

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
}
CHEAP = ("tasks", "algorithms", "configs", "check", "new")
ON_A_RUN = ("evaluate", "export", "report", "play")
OTHERWISE = ("--dry-run", "--step", "--adapter")
"""Options of commands that need more than the run of one iteration, or that rehearse a whole
run."""
OWN_BASE = ("docs/howto/data.md", "docs/howto/games.md")
"""Pages whose changes are those to their last whole config."""
NEEDS = ("wandb", "lamps.yaml", "taught/")
"""In commands that need an account, an extra that the tests do not install, or what a slow command
makes."""
WATCHED = ("--watch-port", "0")
RAN = "ran"
LANGUAGES = ("python", "yaml", "toml", "bash", "console", "text")
"""`text` shows output or a shape; everything else is checked."""

BLOCKS = {name: blocks_of(path) for name, path in DOCUMENTS.items()}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with documented.server() as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in, whose modules are forgotten afterwards."""
    known = set(sys.modules)
    documented.at_a_small_price(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_is_in_a_language_that_is_checked(name: str) -> None:
    assert {block.language for block in BLOCKS[name]} <= set(LANGUAGES)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_of_a_document_runs(
    name: str,
    folder: Path,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    with documented_servers.servers() as servers:
        done = _run(name, folder, server, servers, monkeypatch)
    record_property("blocks", dict(done))


def test_the_table_of_algorithms_names_their_parts() -> None:
    text = DOCUMENTS["docs/reference/algorithms.md"].read_text()
    rows = [[cell.strip(" `") for cell in row.split("|")[1:5]] for row in text.splitlines()]
    told = {
        row[0]: row[1:] for row in rows if row and row[0] in colearn.registry.names("algorithms")
    }
    parts_of = {}
    for name in colearn.registry.names("algorithms"):
        parts = colearn.registry.algorithm_class(name)().checked_parts()
        kinds = (parts.rollout, parts.critic, parts.advantage)
        parts_of[name] = ["none" if kind is None else type(kind).__name__ for kind in kinds]
    assert told == parts_of


@pytest.mark.parametrize("kind", [Rollout, Credit, Advantage, PolicyLoss, Critic, ValueLoss])
def test_the_table_of_parts_names_every_part_and_its_settings(kind: type) -> None:
    section = {PolicyLoss: "loss", ValueLoss: "value_loss"}.get(kind, kind.__name__.lower())
    text = DOCUMENTS["docs/reference/algorithms.md"].read_text()
    rows = [row for row in text.splitlines() if row.startswith(f"| `{section}` |")]
    told = set(re.findall(r"`(\w+)`", " ".join(rows)))
    names = set(colearn.registry.names(KINDS[kind])) if kind in KINDS else set()
    classes = [part_class(kind, name) for name in names] or [kind]
    settings = {field.name for cls in classes for field in fields(cls) if field.init}
    assert names | settings <= told


def _run(
    name: str,
    folder: Path,
    server: str,
    servers: documented_servers.Servers,
    monkeypatch: pytest.MonkeyPatch,
) -> Counter[str]:
    """Runs the blocks of a page; returns how many ran, and how many did not by what they lack."""
    blocks = BLOCKS[name]
    module = types.ModuleType(f"document_{re.sub(r'[^a-z]', '_', name.lower())}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that its classes pickle
    shell = [block for block in blocks if block.language in ("bash", "console")]
    trained = {word for block in shell for words in _commands(block) for word in _trains(words)}
    done: Counter[str] = Counter()
    base: dict[str, Any] | None = None
    for block in blocks:
        lacks = ""
        if block.language == "yaml":
            block = documented.answered(block, server)
        if block.file is not None:
            Path(block.file).write_text(block.text)
        match block.language:
            case "python":
                (text,) = servers.addressed([block.text]) or [block.text]
                source = "\n" * (block.line - 1) + text
                path = Path(block.file).resolve() if block.file else DOCUMENTS[name]
                exec(compile(source, str(path), "exec"), vars(module))
                if path.name.startswith("test_"):  # the page runs it with pytest
                    for test in [name for name in vars(module) if name.startswith("test_")]:
                        vars(module)[test]()
            case "yaml":
                lacks = _train(block, base, trained)
                if name in OWN_BASE and documented.is_whole(block):
                    base = yaml.safe_load(block.text)
            case "toml":
                _register(block, Path.cwd(), monkeypatch)
            case "bash" | "console":
                commands = list(_commands(block))
                ran = False
                for program, *words in commands:
                    if program == "colearn":
                        ran |= _check_command(words, servers, monkeypatch)
                    elif Path(words[0]).is_dir():  # other folders come with what is not run
                        monkeypatch.chdir(words[0])
                        monkeypatch.syspath_prepend(os.getcwd())
                lacks = "" if ran else "commands that only parse"
            case "text":
                lacks = "output or a shape"
        done[lacks or RAN] += 1
    return done


def _train(block: Block, base: dict[str, Any] | None, trained: set[str]) -> str:
    """Trains one iteration of a config; what this machine lacks for it, or an empty text."""
    plan = make_plan(load_config(documented.config_of(block, base)))
    if block.file in trained:
        return ""  # by the page's command
    return documented.train(plan.runs[0].config, Path(f"run of line {block.line}"))


def _trains(words: list[str]) -> list[str]:
    """The config that a command trains."""
    plain = words[:2] == ["colearn", "train"] and not {*OTHERWISE, "--resume"} & set(words)
    return words[2:3] if plain else []


def _register(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What installing a project with these entry points does, here and in new processes."""
    groups = tomllib.loads(block.text)["project"]["entry-points"]
    (folder / "project.dist-info").mkdir()
    (folder / "project.dist-info" / "METADATA").write_text("Name: project\nVersion: 0.1\n")
    (folder / "project.dist-info" / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in points.items())
            for group, points in groups.items()
        )
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    installed = lookup.installed
    monkeypatch.setattr(
        lookup,
        "installed",
        lambda kind: {**installed(kind), **groups.get(f"colearn.{kind}", {})},
    )


def _commands(block: Block) -> Iterator[list[str]]:
    """The words of each `colearn` and `cd` in a block."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue  # output
        for command in re.split(r"&&|\||;", line.removeprefix("$ ")):
            words = shlex.split(command, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words and words[0] in ("colearn", "cd"):
                yield words


def _check_command(
    words: list[str], servers: documented_servers.Servers, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether the command ran; a command that is slow, or needs what no page has made, parses."""
    if words[0].startswith("-"):
        return False
    chosen = typer.main.get_group(app).commands.get(words[0])
    assert chosen is not None, f"no command {words[0]}"
    chosen.make_context(words[0], words[1:]).close()
    name = words[0]
    other = bool(set(OTHERWISE) & set(words)) or any(need in " ".join(words) for need in NEEDS)
    if name == "train" and "--resume" in words:
        if "--set" in words:  # no run with a schedule can be extended
            return False
        documented.make_run(Path(words[words.index("--out") + 1]))
    elif name == "train":
        if other or not (words[1] == "quickstart" or Path(words[1]).exists()):
            return False
    elif name == "serve" and Path(words[1]).is_dir():
        servers.start(words)
        return True
    elif name in ON_A_RUN and not other and _has_run(words[1]):
        reached = servers.addressed(words)
        if reached is None or "person" in " ".join(words):
            return False
        words = [*reached, *(WATCHED if "--watch" in words else ())]
    elif name not in CHEAP:
        return False
    monkeypatch.setattr(sys, "argv", ["colearn", *words])
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, words
    return True


def _has_run(folder: str) -> bool:
    """Whether there is a run in a folder; makes it if the page's command that makes it is a slow
    one."""
    if folder.startswith("run") or "/runs/" in folder:
        documented.make_run(Path(folder))
    return Path(folder).is_dir()
