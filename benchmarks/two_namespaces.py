"""A run with rollouts ahead of updates on two hosts of a Ray cluster: namespaces of this machine.

    python benchmarks/two_namespaces.py whole lost slow [--rate 1mbit] [--iterations 20]

Needs root, and the packages iproute2 and ray. Each namespace has its own address and its own raylet
with room for one of the team's two models; a pair of veth joins them. The run's process is on the
first host. Every case prints the largest difference between the weights of the run and those of the
same run in one process.

whole: the run. lost: all processes of the second host are killed at iteration 8, and the host
starts again after ten seconds; the run has one restart and a checkpoint every 5 iterations. slow:
the run, with both directions of the link limited to a rate by tbf.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from colearn.config import load_config
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts

PORT = 6399
KILLED_AT, AWAY = 8, 10.0
"""The iteration after which the second host is killed, and the seconds until it starts again."""
WAITS = {
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_AUTH_MODE": "disabled",
}
"""Time for Ray's processes to start on a busy machine, where their 30 to 60 s are too short; the
priority of everything else; no tokens, since nothing else reaches the namespaces."""


@dataclass(frozen=True)
class Host:
    """A network namespace."""

    name: str
    address: str
    link: str

    def start(self, *command: str, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            inside = ["ip", "netns", "exec", self.name, *command]
            return subprocess.Popen(
                inside, stdout=file, stderr=file, start_new_session=True, env=os.environ | WAITS
            )

    @property
    def processes(self) -> list[int]:
        return [int(one) for one in run("ip", "netns", "pids", self.name).split()]

    def kill(self) -> None:
        for process in self.processes:
            with_process_gone(process)

    @property
    def sent(self) -> int:
        """Bytes that have left over the link."""
        counter = f"/sys/class/net/{self.link}/statistics/tx_bytes"
        return int(run("ip", "netns", "exec", self.name, "cat", counter))


FIRST = Host("colearn-1", "10.77.0.1", "colearn-v1")
SECOND = Host("colearn-2", "10.77.0.2", "colearn-v2")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def with_process_gone(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


@contextmanager
def two_hosts(rate: str | None) -> Iterator[None]:
    """The namespaces and their link; everything in them ends with the block."""
    for host in (FIRST, SECOND):
        run("ip", "netns", "add", host.name)
    try:
        run("ip", "link", "add", FIRST.link, "type", "veth", "peer", "name", SECOND.link)
        for host in (FIRST, SECOND):
            run("ip", "link", "set", host.link, "netns", host.name)
            inside = ("ip", "netns", "exec", host.name)
            run(*inside, "ip", "address", "add", f"{host.address}/24", "dev", host.link)
            run(*inside, "ip", "link", "set", host.link, "up")
            run(*inside, "ip", "link", "set", "lo", "up")
            if rate is not None:
                limit = ("tbf", "rate", rate, "burst", "16kb", "latency", "400ms")
                run(*inside, "tc", "qdisc", "add", "dev", host.link, "root", *limit)
        yield
    finally:
        for host in (FIRST, SECOND):
            host.kill()
            run("ip", "netns", "delete", host.name)


def start_node(host: Host, folder: Path) -> None:
    """A raylet with one CPU; the first host's has the cluster's head."""
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "1"]
    where = ["--node-ip-address", host.address, "--object-store-memory", "80000000"]
    if host is FIRST:
        where += ["--head", "--port", str(PORT), "--include-dashboard", "false"]
        where += ["--temp-dir", str(folder / "ray")]
    else:
        where += ["--address", f"{FIRST.address}:{PORT}"]
    host.start(*ray, *where, log=folder / f"{host.name}.log")


def wait_for_nodes(count: int, folder: Path) -> None:
    """In the first namespace, since the cluster is reached from there alone."""
    asked = f"import ray; ray.init('{FIRST.address}:{PORT}', logging_level='ERROR'); "
    asked += "print(sum(one['Alive'] for one in ray.nodes()))"
    end = time.monotonic() + 300
    while True:
        command = ("ip", "netns", "exec", FIRST.name, sys.executable, "-c", asked)
        listed = subprocess.run(command, capture_output=True, text=True, env=os.environ | WAITS)
        if listed.returncode == 0 and int(listed.stdout.split()[-1]) >= count:
            return
        if time.monotonic() > end:
            logs = "".join(log.read_text()[-2000:] for log in folder.glob("*.log"))
            raise TimeoutError(f"not {count} nodes within 300 s: {listed.stderr[-500:]}\n{logs}")
        time.sleep(1.0)


def settings(host: dict[str, Any], iterations: int, **more: Any) -> dict[str, Any]:
    return {
        "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
        "algorithm": {"name": "magrpo", "loss": {"importance_cap": 2.0}},
        "models": {"*": {"path": "embedded-tiny", "learning_rate": 1e-3}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "train": {
            "episodes": 4,
            "environment_steps": 10**6,
            "iterations": iterations,
            "staleness": 1,
        },
        "evaluation": {"every": 1000, "episodes": 1},
        "run": {
            "device": "cpu",
            "host": host,
            "generator": {"name": "transformers", "copy": True},
            "checkpoint_every": 5,
            **more,
        },
    }


def drive(file: Path) -> None:
    """The run's process on the first host: says after each iteration where its workers are."""
    given = json.loads(file.read_text())

    def report(progress: Any, metrics: Any) -> None:
        print(json.dumps({"iteration": progress.iteration, "at": time.time()}), flush=True)

    run_with_restarts(load_config(given["config"]), given["out"], started=lambda _: report)


def case(name: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One row of the table."""
    out, file = folder / name, folder / f"{name}.json"
    host = {"name": "ray", "address": f"{FIRST.address}:{PORT}", "cpus": 1}
    config = settings(host, arguments.iterations, restarts=1 if name == "lost" else 0)
    file.write_text(json.dumps({"config": config, "out": str(out)}))
    with two_hosts(arguments.rate if name == "slow" else None):
        start_node(FIRST, folder)
        wait_for_nodes(1, folder)
        start_node(SECOND, folder)
        wait_for_nodes(2, folder)
        before = FIRST.sent + SECOND.sent
        log, on_hosts, times = folder / f"{name}.log", set[str](), {}
        command = (sys.executable, str(Path(__file__)), "--drive", str(file))
        driver = FIRST.start(*command, log=log)
        killed = line_at = None
        while driver.poll() is None:
            time.sleep(0.2)
            lines = log.read_text().splitlines()
            for line in lines:
                if line.startswith("{"):
                    done = json.loads(line)
                    times.setdefault(done["iteration"], done["at"])
            if times and not on_hosts:
                on_hosts = {one.name for one in (FIRST, SECOND) if has_worker(one)}
            if name == "lost" and killed is None and KILLED_AT in times:
                killed = time.time()
                SECOND.kill()
                threading.Timer(AWAY, start_node, (SECOND, folder)).start()
            if killed and line_at is None and any("note: restart" in line for line in lines):
                line_at = time.time()
        sent = FIRST.sent + SECOND.sent - before
    if driver.returncode:
        raise RuntimeError(f"{name}: {log.read_text()[-3000:]}")
    lines = log.read_text().splitlines()
    moments = [times[iteration] for iteration in sorted(times)]
    steps = [later - at for at, later in itertools.pairwise(moments)]
    return {
        "case": name,
        "hosts with a worker": len(on_hosts),
        "median seconds of an iteration": round(statistics.median(steps), 3),
        "kB sent of an iteration": round(sent / 1000 / arguments.iterations, 1),
        "apart": apart(folder / "one", out),
        "seconds until the line": None if line_at is None else round(line_at - killed, 1),
        "restarts": [line for line in lines if line.startswith("note: restart")],
    }


def has_worker(host: Host) -> bool:
    for process in host.processes:
        try:
            line = Path(f"/proc/{process}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if line.startswith(b"ray::RayWorker"):
            return True
    return False


def apart(one: Path, other: Path) -> float:
    """The largest difference between the weights of two runs' last checkpoints."""
    first, second = (open_run(run).checkpoints.choose("last").path for run in (one, other))
    files = sorted(path.relative_to(first) for path in first.glob("actor-*/weights.safetensors"))
    assert len(files) == 2, "two actors"
    pairs = [(load_file(first / file), load_file(second / file)) for file in files]
    return max(float((a[name] - b[name]).abs().max()) for a, b in pairs for name in a)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", help="whole, lost, slow")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--rate", default="1mbit")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive is not None:
        drive(arguments.drive)
        return
    if odd := set(arguments.cases) - {"whole", "lost", "slow"}:
        parser.error(f"no case {sorted(odd)}; choose from whole, lost, slow")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the namespaces are removed
    with tempfile.TemporaryDirectory(prefix="two") as made:  # Ray's sockets need a short path
        folder = Path(made)
        os.environ.setdefault("COLEARN_CACHE", str(folder / "cache"))
        Experiment(
            load_config(settings({"name": "local"}, arguments.iterations)), folder / "one"
        ).run()
        for name in arguments.cases:
            print(json.dumps(case(name, arguments, folder)), flush=True)


if __name__ == "__main__":
    main()
