"""Every fenced code block of README.md and docs/ runs, in order, in a folder of its own.

- `python` is executed, one namespace per file; a block that opens with `# name.py` is that file,
  and the functions of a `# test_name.py` are called.
- `yaml` is a config, a part of one (laid over the quickstart), or, with `# name.yaml`, that file.
- `toml` that names entry points registers them.
- `bash` and `console`: each `colearn` line must parse; the cheap commands are executed, and so is
  `cd` into a folder that one of them wrote.

`<!-- runs: slow -->` before a block moves it to the slow marker.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import typer
import yaml

import colearn.registry
from colearn.cli import app, main
from colearn.comparison.plan import make_plan
from colearn.config import load_config, shipped_configs
from colearn.config.parts import KINDS, part_class
from colearn.contract import Advantage, Credit, Critic, PolicyLoss, Rollout, ValueLoss
from colearn.registry import lookup

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
}
CHEAP = ("tasks", "algorithms", "configs", "check", "new")
LANGUAGES = ("python", "yaml", "toml", "bash", "console", "text")
"""`text` shows output or a shape; everything else is checked."""

_BLOCK = re.compile(
    r"^(?P<slow><!-- runs: slow -->\n+)?```(?P<language>[^\n]*)\n(.*?)^```$", re.M | re.S
)


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


def _blocks(path: Path) -> list[Block]:
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


BLOCKS = {name: _blocks(path) for name, path in DOCUMENTS.items()}
SLOW = [name for name, blocks in BLOCKS.items() if any(block.slow for block in blocks)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in, whose modules are forgotten afterwards."""
    known = set(sys.modules)
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
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(name, [block for block in BLOCKS[name] if not block.slow], folder, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_block_of_a_document_runs_with_its_slow_ones(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(name, BLOCKS[name], folder, monkeypatch)


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


def _run(name: str, blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"document_{re.sub(r'[^a-z]', '_', name.lower())}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that its classes pickle
    for block in blocks:
        if block.file is not None:
            (folder / block.file).write_text(block.text)
        match block.language:
            case "python":
                source = "\n" * (block.line - 1) + block.text
                path = folder / block.file if block.file else DOCUMENTS[name]
                exec(compile(source, str(path), "exec"), vars(module))
                if path.name.startswith("test_"):  # the page runs it with pytest
                    for test in [name for name in vars(module) if name.startswith("test_")]:
                        vars(module)[test]()
            case "yaml":
                _check_yaml(block)
            case "toml":
                _register(block, folder, monkeypatch)
            case "bash" | "console":
                for program, *words in _commands(block):
                    if program == "colearn":
                        _check_command(words, monkeypatch)
                    elif (folder / words[0]).is_dir():  # other folders come with what is not run
                        folder /= words[0]
                        monkeypatch.chdir(folder)
                        monkeypatch.syspath_prepend(str(folder))


def _check_yaml(block: Block) -> None:
    data = yaml.safe_load(block.text)
    if not {"task", "models"} <= set(data):
        base = yaml.safe_load(shipped_configs()["quickstart"].read_text())
        data = base | {"compare": {}} | data
    make_plan(load_config(data))


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


def _check_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if words[0].startswith("-"):
        return
    chosen = typer.main.get_group(app).commands.get(words[0])
    assert chosen is not None, f"no command {words[0]}"
    chosen.make_context(words[0], words[1:]).close()
    if words[0] in CHEAP:
        monkeypatch.setattr(sys, "argv", ["colearn", *words])
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, words
