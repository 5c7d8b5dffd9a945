"""Mutation score of the core: the share of small breaks that the tests notice.

    pip install "mutmut>=3.8.1"
    python benchmarks/mutations.py [--count 60] [--seed 0] [--seconds 20] [advantage loss learn ...]

mutmut makes the mutants, in a copy of the repository under mutants/; what an error says, and what
only types need, is not mutated. Every test that PACKAGES names runs once on the unchanged code, to
see which functions it reaches, in processes that it starts, too. Then mutants are tried in a drawn
order, each forked, on the tests that reach it, the quickest first, until one fails or never ends.

What is known is kept under mutants/. Said again, the command takes new tests from the working tree
and tries what was missed on them and on those that the seconds did not suffice for.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

ROOT = Path(__file__).parents[1]
TREE = ROOT / "mutants" / "tree"
PACKAGES: dict[str, tuple[str, str, str]] = {
    "advantage": (
        "methods/advantage",
        "unit/advantage unit/algorithms unit/credit unit/critic unit/test_unscored.py",
        "updater",
    ),
    "loss": ("methods/loss", "unit/loss unit/algorithms unit/test_unscored.py", "updater"),
    "critic": (
        "methods/critic",
        "unit/critic unit/advantage/test_token_gae.py",
        "updater workflow_training",
    ),
    "learners": (
        "training/learners",
        "unit/learners unit/algorithms unit/sft unit/training unit/estimate/test_estimate.py "
        "unit/rollout/test_draws.py unit/test_own_parts_errors.py",
        "continuing critic_settings exact export_critics fresh_prompts gradients logprobs "
        "references sft updater values who_learns workflow_training",
    ),
    "rollout": (
        "rollout",
        "unit/rollout unit/agents unit/cast unit/advantage unit/tasks/test_misbehaving_tasks.py "
        "unit/config/test_temperature_anneal.py unit/serve/test_content_bytes.py "
        "unit/serve/test_serve_text.py unit/sft/test_dialogues.py unit/test_odd_user_code.py "
        "unit/test_reasoning.py unit/test_truncated_episodes.py contract/test_check_task.py",
        "chat_formats first_opening free_order overflow template_dialogues",
    ),
    "engines": (
        "engines",
        "unit/engines unit/serve unit/estimate/test_duration.py",
        "continuous_batching end_tokens generations sampling serve_engine served_teacher "
        "several_servers shared_servers token_engine vllm_server vllm_server_answers "
        "vllm_server_checks vllm_server_engine vllm_server_faults vllm_server_requests "
        "vllm_server_start",
    ),
    "statistics": ("runs/over_seeds.py", "unit/test_statistics.py", ""),
    "update": (
        "training/update",
        "unit/algorithms unit/training unit/test_item_means.py unit/test_own_parts_errors.py "
        "unit/test_truncated_episodes.py unit/test_unscored.py",
        "critic_settings gradients references served_teacher teachers update_schedules updater "
        "values who_learns workflow_training",
    ),
    "values": (
        "methods/values",
        "unit/critic unit/training unit/test_ceiling.py unit/test_item_means.py "
        "unit/test_own_parts_errors.py unit/test_truncated_episodes.py unit/test_unscored.py",
        "critic_fit export_critics given_critic updater values",
    ),
}
"""What is mutated, below colearn/; the tests that judge it, below tests/; integration/test_*.py."""
LEFT_OUT = "deepspeed"
"""Files that need an extra, by how their names begin."""
ENDLESS = "does not end"

RECORDER = '''\
"""In every process of a recorded test: each function that is reached is written down once."""

import os

if os.environ.get("MUTANT_UNDER_TEST") == "stats":
    import mutmut.mutation.trampoline as trampoline

    written = set()

    def record(function, caller=None):
        path = os.environ["MUTANT_REACHED"]
        if (path, function) not in written:
            written.add((path, function))
            with open(path, "a", encoding="utf-8") as file:
                file.write(function + "\\n")

    trampoline.record_trampoline_hit = record
'''
SETTINGS = r"""
[tool.mutmut]
source_paths = ["colearn"]
do_not_mutate_patterns = ['^\s*(raise|assert)\b']
"""

Line = dict[str, Any]
"""Of a test: `test`, `seconds`, `failed`, `functions`. Of a mutant: `mutant`, `tried`, `by`."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=[*PACKAGES], help=", ".join(PACKAGES))
    parser.add_argument("--count", type=int, default=60, help="mutants to try of each package")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn order")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests on one mutant")
    chosen = parser.parse_args()
    if not (TREE.parent / "mutants.json").is_file():
        shutil.rmtree(TREE, ignore_errors=True)
        copy_repository()
        make_mutants()
    shutil.copytree(ROOT / "tests", TREE / "tests", dirs_exist_ok=True)
    os.chdir(TREE)
    sys.path.insert(0, str(TREE))
    os.environ |= {"PYTHONPATH": str(TREE), "MUTANT_UNDER_TEST": "stats"}
    runpy.run_path("sitecustomize.py")
    os.environ["MUTANT_UNDER_TEST"] = ""  # while tests are collected
    tests = {f"tests/{path}" for name in chosen.packages for path in judges(name)}
    arguments = ["-q", "-s", "-p", "no:cacheprovider", "--no-header", *sorted(tests)]
    judge = Judge(chosen.packages, chosen.count, chosen.seed, chosen.seconds)
    if pytest.main(arguments, plugins=[judge]):
        raise SystemExit("the mutants were not tried to the end")
    print("\n".join([*judge.rows, "", *judge.missed]))


def judges(package: str) -> list[str]:
    _, paths, names = PACKAGES[package]
    return [*paths.split(), *(f"integration/test_{name}.py" for name in names.split())]


def copy_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], check=True, cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, TREE / name, follow_symlinks=False)
    (TREE / "sitecustomize.py").write_text(RECORDER, encoding="utf-8")
    with (TREE / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(SETTINGS)


def make_mutants() -> None:
    """Write every mutant of every package beside its function; `mutants.json` lists their names."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    os.chdir(TREE)  # where mutmut reads its settings
    names: dict[str, list[str]] = {}
    for package, (folder, *_) in PACKAGES.items():
        names[package] = []
        place = Path("colearn", folder)
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if not path.name.startswith(LEFT_OUT):
                mutated = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
                path.write_text(mutated.code, encoding="utf-8")
                module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
                names[package] += [f"{module}.{name}" for name in mutated.mutant_names]
    (TREE.parent / "mutants.json").write_text(json.dumps(names), encoding="utf-8")


class Judge:
    """A plugin of pytest that runs the collected tests on one mutant after the other."""

    def __init__(self, packages: Sequence[str], count: int, seed: int, seconds: float) -> None:
        self.packages, self.count, self.seed, self.seconds = packages, count, seed, seconds
        self.rows, self.missed = [cells(HEAD), cells(["---"] * len(HEAD))], list[str]()
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests cannot be imported")
        items = session.items
        record_reach(items, self.run)
        fast = {item.nodeid for item in items if item.get_closest_marker("fast")}
        mutants = json.loads((TREE.parent / "mutants.json").read_text(encoding="utf-8"))
        for package in self.packages:
            names = drawn(mutants[package], self.count, f"{self.seed} {package}")
            verdicts = [self.verdict(name, items) for name in names]
            self.rows.append(row(package, len(mutants[package]), verdicts, fast))
            self.missed += [
                change(name) for name, by in zip(names, verdicts, strict=True) if by is None
            ]
        return True

    def run(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        """Whether the test fails."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self.failed

    def verdict(self, mutant: str, items: Sequence[pytest.Item]) -> str | None:
        """The test that notices the mutant, ENDLESS, or None."""
        known = read("verdicts", "mutant").get(mutant, {"tried": [], "by": None})
        if known["by"] is not None:
            return known["by"]
        function, here = mutant.rpartition("__mutmut_")[0], {item.nodeid: item for item in items}
        reaching = [
            test
            for test in sorted(read("reach", "test").values(), key=lambda test: test["seconds"])
            if function in test["functions"] and not test["failed"] and test["test"] in here
        ]
        chosen, spent = [], 0.0
        for test in (test for test in reaching if test["test"] not in known["tried"]):
            if chosen and spent + test["seconds"] > self.seconds:
                break
            chosen.append(test["test"])
            spent += test["seconds"]
        limit = 60 + 20 * spent  # of a machine that others use, too
        by = first_failing([here[test] for test in chosen], mutant, limit, self.run)
        while by in here and first_failing([here[by]], "", limit, self.run):  # fails by itself
            rest = chosen[chosen.index(by) + 1 :]
            by = first_failing([here[test] for test in rest], mutant, limit, self.run)
        tried = [*known["tried"], *chosen]
        write("verdicts", {"mutant": mutant, "tried": tried, "of": len(reaching), "by": by})
        print(f"\n{mutant}: {by}, {len(tried)} of {len(reaching)}", file=sys.stderr, flush=True)
        return by


def record_reach(items: Sequence[pytest.Item], run: Callable[..., bool]) -> None:
    """Write down which functions each test reaches, of the tests that are not recorded yet."""
    known = read("reach", "test")
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.nodeid not in known:
            by_file.setdefault(item.path, []).append(item)
    for path, tests in by_file.items():

        def record(tests: Sequence[pytest.Item] = tests) -> None:
            os.environ["MUTANT_UNDER_TEST"] = "stats"
            for number, item in enumerate(tests):
                reached = TREE.parent / f"reached_{os.getpid()}_{number}.txt"
                reached.write_text("")
                os.environ["MUTANT_REACHED"] = str(reached)
                start = time.perf_counter()
                failed = run(item, next(iter(tests[number + 1 :]), None))
                line: Line = {"test": item.nodeid, "seconds": time.perf_counter() - start}
                functions = sorted(set(reached.read_text(encoding="utf-8").split()))
                write("reach", line | {"failed": failed, "functions": functions})
                reached.unlink()

        if not forked(record, 400.0):
            print(f"\n{path}: not all of its tests end", file=sys.stderr, flush=True)


def first_failing(
    items: Sequence[pytest.Item], mutant: str, seconds: float, run: Callable[..., bool]
) -> str | None:
    """The first of the tests that fails on a mutant, ENDLESS after the seconds."""
    found = TREE.parent / f"failing_{os.getpid()}.txt"
    found.write_text("")

    def look() -> None:
        os.environ["MUTANT_UNDER_TEST"] = mutant
        for number, item in enumerate(items):
            if run(item, next(iter(items[number + 1 :]), None)):
                found.write_text(item.nodeid, encoding="utf-8")
                return

    ended = forked(look, seconds)
    name = found.read_text(encoding="utf-8") or None
    found.unlink()
    return name if ended else ENDLESS


def forked(work: Callable[[], None], seconds: float) -> bool:
    """Whether the work comes to its end, in a process and a group of processes of its own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 1
        try:
            log = os.open(TREE.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    ended, status = 0, 0
    while not ended and time.monotonic() < end:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):  # what a test left running, too
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    return bool(ended) and status == 0


def read(name: str, key: str) -> dict[str, Line]:
    path = TREE.parent / f"{name}.jsonl"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {line[key]: line for line in map(json.loads, text.splitlines())}


def write(name: str, line: Line) -> None:
    with (TREE.parent / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def drawn(mutants: Sequence[str], count: int, seed: str) -> list[str]:
    """The beginning of a drawn order, so that a longer draw contains a shorter one."""
    return random.Random(seed).sample(mutants, len(mutants))[:count]


def change(mutant: str) -> str:
    """What differs between a function and its mutant."""
    module, _, name = mutant.rpartition(".")
    path = TREE / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    original = name.rpartition("__mutmut_")[0] + "__mutmut_orig"
    body = {
        node.name: ast.unparse(node).splitlines()[1:]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name in (original, name)
    }
    lines = difflib.unified_diff(body[original], body[name], mutant, lineterm="", n=1)
    return "\n".join(lines)


HEAD = ("package", "mutants", "tried", "noticed", "by the fast tier", "never ended", "score")


def row(package: str, mutants: int, verdicts: Sequence[str | None], fast: Set[str]) -> str:
    """A line of the table; of a draw the score has its 95% interval, by Wilson."""
    noticed = sum(by is not None for by in verdicts)
    score = f"{100 * noticed / len(verdicts):.1f}%"
    if len(verdicts) < mutants:
        bounds = stats.binomtest(noticed, len(verdicts)).proportion_ci(0.95, method="wilson")
        score += f" [{100 * bounds.low:.1f}, {100 * bounds.high:.1f}]"
    quick, endless = sum(by in fast for by in verdicts), sum(by == ENDLESS for by in verdicts)
    return cells((package, mutants, len(verdicts), noticed, quick, endless, score))


def cells(texts: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, texts))} |"


if __name__ == "__main__":
    main()
