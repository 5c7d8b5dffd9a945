"""Trains the teams that a release carries, exports them with their critics, and checks each export.

    python benchmarks/trained_teams.py --out teams                    the teams without a download
    python benchmarks/trained_teams.py --out teams --gemma FOLDER     and StrBuild with Gemma 3 270M
    python benchmarks/trained_teams.py --out teams --only kuhn_poker

Each team is an archive OUT/NAME.tar.gz of one folder per agent and per critic, with a line in
OUT/SHA256SUMS. The receipt: greedy play over one server per agent has the metrics of the trainer's
greedy evaluation, to the last digit printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

import colearn
from colearn.record import open_run

COLEARN = (sys.executable, "-m", "colearn")
BEST = ("--step", "best")
"""The checkpoint of the best evaluation; late in a run greedy play varies."""
GREEDY = ("--set", "evaluation.greedy=true", "--set", "evaluation.repeats=1")


@dataclass(frozen=True)
class Team:
    """One run of a shipped config."""

    config: str
    algorithm: str
    better: str
    """What its headline measures."""
    settings: tuple[str, ...] = ()


TEAMS = {
    "kuhn_poker": Team("learning/kuhn_both_hands", "collm_dc", "NashConv, 0 is an equilibrium"),
    "sudoku": Team("tiny/stronger_mas_sudoku", "collm_dc", "share of puzzles solved"),
    "plan_path": Team("tiny/stronger_mas_plan_path", "collm_dc", "share of paths found"),
}
GEMMA = {"str_build_gemma": Team("gemma_str_build", "collm_cc_clipped", "return")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gemma", type=Path, help="folder of Gemma 3 270M")
    parser.add_argument("--only", help="names of teams, separated by commas")
    options = parser.parse_args()
    teams = dict(TEAMS)
    if options.gemma:
        paths = tuple(f"{key}.path={options.gemma}" for key in ("models.*", "critic"))
        teams |= {n: Team(t.config, t.algorithm, t.better, paths) for n, t in GEMMA.items()}
    names = options.only.split(",") if options.only else list(teams)
    lines = [
        "| team | algorithm | headline | before | best | greedy return, trainer | servers | "
        "critic | MB | sha256 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    sums = []
    for name in names:
        row, digest = make(name, teams[name], options.out)
        lines.append(row)
        sums.append(f"{digest}  {name}.tar.gz")
    (options.out / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    (options.out / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def make(name: str, team: Team, out: Path) -> tuple[str, str]:
    """The team's row of the table, and its archive's digest."""
    made = out / "runs" / name
    settings = [word for setting in team.settings for word in ("--set", setting)]
    seeds = ("--set", "compare.seeds=[0]", "--algorithms", team.algorithm)
    run_command("compare", team.config, "--out", str(made), *seeds, *settings)
    run = made / "runs" / f"{team.algorithm}-s0"
    exported = out / name
    shutil.rmtree(exported, ignore_errors=True)
    run_command("export", str(run), "--to", str(exported / "agents"), *BEST)
    run_command("export", str(run), "--critics", "--to", str(exported / "critics"), *BEST)
    agents = {path.name: path for path in sorted((exported / "agents").iterdir()) if path.is_dir()}
    evaluated = run_command("evaluate", str(run), *BEST, *GREEDY)
    with serving(agents) as urls:
        named = [word for agent, url in urls.items() for word in ("--agent", f"{agent}={url}")]
        played = run_command("play", str(run), *GREEDY, *named)
    trainer, servers = metrics(evaluated), metrics(played)
    shared = sorted(trainer.keys() & servers.keys())
    differing = [key for key in shared if trainer[key] != servers[key]]
    if not shared or differing:
        raise SystemExit(f"{name}: servers and trainer differ in {differing or 'every metric'}")
    archive = out / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(exported, arcname=name)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    read = colearn.read_run(open_run(run))
    headline = read.record.headline.metric
    values = [line.metrics[headline] for line in read.evaluations]
    best = min(values) if read.record.headline.better == "lower" else max(values)
    greedy = [shown.get("return", "-") for shown in (trainer, servers)]
    critics = ", ".join(sorted(path.name for path in (exported / "critics").iterdir()))
    size = archive.stat().st_size / 1e6
    row = (
        f"| {name} | {team.algorithm} | {headline}: {team.better} | {values[0]:.3f} | {best:.3f} | "
        f"{greedy[0]} | {greedy[1]} | {critics} | {size:.1f} | {digest[:16]}... |"
    )
    return row, digest


def run_command(*words: str) -> str:
    """The output of `colearn WORDS`. Errors: SystemExit with what it wrote."""
    done = subprocess.run([*COLEARN, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"colearn {' '.join(words)} failed:\n{done.stderr or done.stdout}")
    return done.stdout


def metrics(text: str) -> dict[str, object]:
    """The metrics that a command printed, without its times."""
    printed = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return {name: value for name, value in printed.items() if "seconds" not in name}


@contextmanager
def serving(agents: Mapping[str, Path]) -> Iterator[dict[str, str]]:
    """A server for each agent; their URLs."""
    ports = {agent: free_port() for agent in agents}
    servers = [
        subprocess.Popen(
            [*COLEARN, "serve", str(folder), "--port", str(ports[agent])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for agent, folder in agents.items()
    ]
    urls = {agent: f"http://127.0.0.1:{port}" for agent, port in ports.items()}
    try:
        for url in urls.values():
            wait_for(url)
        yield urls
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def wait_for(url: str, seconds: float = 120.0) -> None:
    """Errors: SystemExit if nothing answers in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit(f"no server at {url} after {seconds:.0f} s")


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


if __name__ == "__main__":
    main()
