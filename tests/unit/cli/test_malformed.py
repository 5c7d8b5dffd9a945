"""Malformed configs and files, made by a generator: each is one line and exit 2."""

from __future__ import annotations

import copy
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import pytest
import yaml
from tiny import register, save_model

from colearn import __version__
from colearn.entry.cli import main
from colearn.runs.record import ComparisonEntry, ComparisonFolder, ComparisonRecord

CONFIG: dict[str, Any] = {
    "task": {"name": "notes", "horizon": 1, "items": 2},
    "algorithm": {"name": "collm_cc", "discount": 0.9, "loss": {"kl": 0.01, "clip": 0.2}},
    "models": {"*": {"path": "MODEL", "learning_rate": 1e-4, "lora": {"rank": 2, "alpha": 4.0}}},
    "agents": {"*": {"chat": "auto", "window": 64, "sampling": {"max_tokens": 2, "top_p": 0.9}}},
    "critic": {"path": "MODEL", "learning_rate": 1e-4, "max_length": 512},
    "train": {"environment_steps": 2, "episodes": 2, "epochs": 1, "token_budget": 512},
    "evaluation": {"every": 2, "episodes": 1, "pass_at": [1], "greedy": False},
    "run": {"device": "cpu", "seed": 0, "trackers": [], "keep_checkpoints": 2},
    "cast": {"name": "own"},
    "compare": {"algorithms": {"collm_cc": {}}, "seeds": [0, 1], "workers": 1},
}
ODD = ("\u202egnp", "ключ", "a b", "💥", "", "x" * 3000, "new\nline", "\x00", "%s{0}", "../..")
WRONG = ([], {}, [[]], {"a": {"b": 1}}, "word", "💥", "1e", [1, "a"], "null ", float("nan"))
NUMBERS = (-1, -(10**30), float("inf"), float("-inf"), float("nan"))


Case = tuple[str, bytes]


def fields(section: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in section.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from fields(value, (*above, key))


def changed(path: tuple[str, ...], value: Any) -> bytes:
    whole = copy.deepcopy(CONFIG)
    section = whole
    for key in path[:-1]:
        section = section[key]
    section[path[-1]] = value
    return yaml.safe_dump(whole, allow_unicode=True).encode()


def configs(rng: random.Random) -> Iterator[Case]:
    """Without end: a kind of mistake, and the file that makes it."""
    paths = list(fields(CONFIG))
    numbers = [p for p in paths if isinstance(_at(p), int | float) and p[0] not in ("task", "run")]
    whole = yaml.safe_dump(CONFIG).encode()
    sections = [
        p
        for p in paths
        if isinstance(_at(p), dict) and p[-1] not in ("*", "algorithms", "collm_cc")
    ]
    while True:
        path = rng.choice([p for p in paths if not isinstance(_at(p), str | list)])
        if path != ("compare", "algorithms", "collm_cc") and path[-1] != "algorithms":
            value = rng.choice([one for one in WRONG if not _empty_section(path, one)])
            yield f"type of {'.'.join(path)}: {value!r}", changed(path, value)
        path = rng.choice([p for p in numbers if p[-1] != "greedy"])
        number = rng.choice(NUMBERS)
        yield f"range of {'.'.join(path)}: {number}", changed(path, number)
        path, odd = rng.choice(sections), rng.choice(ODD)
        yield f"key {odd[:20]!r} in {'.'.join(path)}", changed((*path, odd), 1)
        name = rng.choice([("task", "name"), ("run", "device"), ("wrapper",), ("cast", "name")])
        yield f"name {odd[:20]!r} as {'.'.join(name)}", changed(name, odd)
        yield f"path {odd[:20]!r}", changed(("models", "*", "path"), odd)
        depth = rng.choice((10, 200, 1100))  # longer ones take PyYAML seconds
        yield f"{depth} lists", b"task: " + b"[" * depth + b"]" * depth
        yield f"{depth} sections", b"".join(b"%b? " % (b" " * n) for n in range(depth % 700))
        cut = rng.randrange(1, len(whole) - 1)
        spoilt = whole[:cut] + rng.choice((b"\xff\xfe", b"\t: [", b"\x00", b"!!python/object:x"))
        yield f"spoilt after {cut} bytes", spoilt
        yield f"cut after {cut // 4} bytes", whole[: cut // 4] + b" '"
        encoding = rng.choice(("utf-16", "utf-32", "cp037"))
        yield f"in {encoding}", yaml.safe_dump(CONFIG).encode(encoding)[1:]
        yield "no mapping", rng.choice((b"", b"[]", b"7", b"word", b"- task", b"null"))


def _at(path: tuple[str, ...]) -> Any:
    value: Any = CONFIG
    for key in path:
        value = value[key]
    return value


def _empty_section(path: tuple[str, ...], value: Any) -> bool:
    """What would be right there: `train: {}` is."""
    return value == {} and isinstance(_at(path), dict)


def spoilt_files(rng: random.Random) -> Iterator[tuple[str, str, str, bytes]]:
    """Without end: what is wrong, the command that reads the file, the file, what it holds."""
    files = {
        "runs/magrpo-s0/run.json": ("report",),
        "runs/magrpo-s0/metrics.jsonl": ("report",),
        "runs/magrpo-s0/episodes.jsonl": ("report",),
        "runs/magrpo-s0/config.yaml": ("report", "evaluate", "export", "play", "resume"),
        "compare.json": ("report",),
    }
    values = (None, "x", [], {}, -1, 1.5, "1", [[1]], True, "💥" * 40)
    while True:
        name = rng.choice(list(files))
        command = rng.choice(files[name])
        whole, share = WHOLE[name], rng.random()
        if name.endswith(".yaml"):
            content = rng.choice(
                (b"[", b"a: [b", b"\xff", b"7", b"- 1", b"task: 3", whole[:30] + b"'")
            )
            yield f"{command} with {content[:12]!r}", command, name, content
        elif share < 0.5:
            cut = rng.randrange(1, len(whole) // 2)
            content = whole[:cut] + rng.choice((b"\xff", b"}", b"\x00\n{}", b"]\n")) + b"\n{}\n"
            yield f"{name} spoilt after {cut}", command, name, content
        else:
            first, _, rest = whole.partition(b"\n") if name.endswith("l") else (whole, b"", b"")
            data = json.loads(first)
            key = rng.choice(REQUIRED[name.rpartition("/")[2]])
            value = rng.choice([one for one in values if not _fits(key, one)])
            data[key] = value
            content = json.dumps(data).encode() + b"\n" + rest
            yield f"{name}: {key} is {value!r}", command, name, content


REQUIRED = {
    "run.json": ("status", "algorithm", "seed", "agents", "models", "iterations", "first"),
    "metrics.jsonl": ("kind", "iteration", "environment_steps", "metrics"),
    "episodes.jsonl": ("iteration", "turns"),
    "compare.json": ("runs",),
}
WHOLE: dict[str, bytes] = {}


def _fits(key: str, value: Any) -> bool:
    """Whether a value may stand there after all."""
    fits: dict[str, tuple[Any, ...]] = {
        "algorithm": ("x", "1", "💥" * 40),
        "seed": (-1, "1", True),
        "iteration": ("1", True),
        "iterations": ("1", True),
        "environment_steps": ("1", True),
    }
    empty = (value == [] and key in ("agents", "turns")) or (value == {} and key in _MAPPINGS)
    return empty or any(value is one or value == one for one in fits.get(key, ()))


_MAPPINGS = ("models", "first", "metrics")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def colearn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    register(monkeypatch, notes="tiny:Notes")

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["colearn", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


def complaint(code: int, err: str) -> str | None:
    """What is wrong with how a mistake was answered."""
    if code != 2:
        return f"exit {code}"
    if not err.startswith("error: ") or err.count("\n") != 1 or not err.endswith("\n"):
        return f"not one line: {err[:300]!r}"
    return None if len(err) < 1000 else f"{len(err)} characters"


@pytest.mark.parametrize(
    ("seed", "count"), [(11, 22), pytest.param(12, 300, marks=pytest.mark.slow)]
)
def test_malformed_configs_are_one_line_each(
    seed: int, count: int, colearn: Any, model: str, tmp_path: Path
) -> None:
    path, wrong = tmp_path / "config.yaml", []
    cases = configs(random.Random(seed))
    for number in range(count):
        kind, content = next(cases)
        path.write_bytes(content.replace(b"MODEL", model.encode()))
        command = ("train", "compare")[number % 2]
        try:
            problem = complaint(*colearn(command, path, "--out", tmp_path / "out", "--dry-run"))
        except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
            problem = f"{type(error).__name__}: {str(error)[:200]}"
        if problem is not None:
            wrong.append(f"{command}, {kind[:80]}: {problem}")
    assert wrong == []


@pytest.mark.parametrize(
    ("seed", "count"), [(11, 12), pytest.param(12, 200, marks=pytest.mark.slow)]
)
def test_malformed_files_of_runs_are_one_line_each(
    seed: int, count: int, colearn: Any, tmp_path: Path
) -> None:
    whole = fabricated.write_comparison(tmp_path / "whole", seeds=[0], algorithms=["magrpo"])
    record = ComparisonRecord(
        version=__version__,
        algorithms=("magrpo",),
        runs=(ComparisonEntry(run="magrpo-s0", algorithm="magrpo", seed=0),),
    )
    ComparisonFolder(whole).write(record)
    for name in ("run.json", "metrics.jsonl", "episodes.jsonl", "config.yaml"):
        key = f"runs/magrpo-s0/{name}"
        WHOLE[key] = (whole / key).read_bytes()
    WHOLE["compare.json"] = (whole / "compare.json").read_bytes()
    cases, wrong = spoilt_files(random.Random(seed)), []
    for number in range(count):
        kind, command, name, content = next(cases)
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        (folder / name).write_bytes(content)
        run = folder / "runs" / "magrpo-s0"
        arguments = {
            "report": ["report", folder],
            "evaluate": ["evaluate", run],
            "export": ["export", run, "--to", folder / "agents"],
            "play": ["play", run, "--agent", "left=http://127.0.0.1:9"],
            "resume": ["train", "--out", run, "--resume"],
        }[command]
        try:
            problem = complaint(*colearn(*arguments))
        except Exception as error:  # noqa: BLE001 - a traceback is what is looked for
            problem = f"{type(error).__name__}: {str(error)[:200]}"
        if problem is not None:
            wrong.append(f"{kind[:80]}: {problem}")
    assert wrong == []
