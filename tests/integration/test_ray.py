"""Models as actors of a real Ray cluster on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from safetensors.torch import load_file

from colearn.config import load_config
from colearn.config.settings import Config
from colearn.errors import ConfigError
from colearn.runs.record import open_run
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts

pytestmark = pytest.mark.ray

MODEL = {"path": "embedded-tiny", "learning_rate": 1e-3}
WORKER = "ray::RayWorker"
"""How a worker is named in the list of processes."""


@pytest.fixture(scope="module", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders for embedded models and for Ray, and no cluster that the shell names."""
    # one of pytest is too long for the path of a socket
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as of_ray:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("RAY_TMPDIR", of_ray)
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


def settings(host: Mapping[str, Any], **run: Any) -> dict[str, Any]:
    """Two actors and a critic; episodes are rolled out ahead of updates."""
    return {
        "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
        "algorithm": {"name": "collm_cc", "loss": {"importance_cap": 2.0}},
        "models": {"*": MODEL},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "critic": MODEL,
        "train": {"episodes": 4, "environment_steps": 4000, "iterations": 6, "staleness": 1},
        "evaluation": {"every": 3, "episodes": 1, "exact": True},
        "run": {
            **{"device": "cpu", "host": host, "checkpoint_every": 2},
            **{"generator": {"name": "transformers", "copy": True}, **run},
        },
    }


def config_of(host: Mapping[str, Any], **run: Any) -> Config:
    return load_config(settings(host, **run))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with its models in this process."""
    folder = tmp_path_factory.mktemp("here") / "run"
    Experiment(config_of({"name": "local"}), folder).run()
    return folder


def apart(one: Path, other: Path) -> float:
    """The largest difference between the weights of two runs' last checkpoints."""
    first, second = (open_run(run).checkpoints.choose("last").path for run in (one, other))
    files = sorted(path.relative_to(first) for path in first.rglob("weights.safetensors"))
    assert files and files == sorted(
        path.relative_to(second) for path in second.rglob("weights.safetensors")
    )
    gaps = []
    for file in files:
        left, right = load_file(first / file), load_file(second / file)
        assert left.keys() == right.keys()
        gaps += [float((left[name] - right[name]).abs().max()) for name in left]
    return max(gaps)


def started(by: int | None = None) -> dict[psutil.Process, str]:
    """The processes that a process (None: this one) has started, directly or not, with the commands
    that they run."""
    found = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(by).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[process] = " ".join(process.cmdline())
    return found


def workers() -> list[psutil.Process]:
    """The workers of clusters that this process has started."""
    return [process for process, command in started().items() if command.startswith(WORKER)]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """After a test this process has no connection to a cluster and no worker is left."""
    import ray

    yield
    connected = ray.is_initialized()
    ray.shutdown()  # the next test has no cluster of one that failed
    end = time.monotonic() + 600
    while workers() and time.monotonic() < end:
        time.sleep(0.2)
    assert not connected and workers() == []


def test_models_on_ray_end_with_the_weights_of_models_in_one_process(
    here: Path, tmp_path: Path
) -> None:
    Experiment(config_of({"name": "ray"}), tmp_path / "there").run()
    assert apart(here, tmp_path / "there") == 0.0
    runs = [open_run(here), open_run(tmp_path / "there")]
    exact = [[line.metrics["exact_return"] for line in run.evaluations()] for run in runs]
    assert exact[0] == exact[1] and len(set(exact[0])) == 3
    lines = [line.metrics for line in runs[1].lines() if line.kind == "update"]
    assert [line["staleness"] for line in lines] == [0.0] + [1.0] * 5
    assert sum(line["seconds/overlap"] or 0.0 for line in lines) > 0.0


@pytest.mark.parametrize("learner", ["local", "zero2"])
def test_workers_of_two_processes_end_with_the_weights_of_one_process(
    here: Path, tmp_path: Path, learner: str
) -> None:
    divided: dict[str, Any] = {}
    if learner != "local":
        pytest.importorskip("deepspeed")
        divided = {"learner": {"name": "deepspeed", "config": learner}}
    Experiment(config_of({"name": "ray", "processes": 2}, **divided), tmp_path / "there").run()
    assert apart(here, tmp_path / "there") < 1e-5


def test_a_killed_worker_is_replaced_and_the_run_ends_with_the_weights_of_a_whole_run(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed: list[psutil.Process] = []

    def report(progress: Any, metrics: Any) -> None:
        if progress.iteration == 3 and not killed:
            killed.append(workers()[0])
            killed[0].kill()

    config = config_of({"name": "ray"}, restarts=1)
    record = run_with_restarts(config, tmp_path / "lost", started=lambda _: report)
    assert killed and record.status == "finished" and record.updates == 6
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: re")]
    assert len(told) == 1
    assert told[0].startswith("note: restart 1 of 1: run.host: the worker of ")
    assert apart(here, tmp_path / "lost") == 0.0


@pytest.fixture
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes, with two CPUs and with one."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


def test_a_cluster_of_two_nodes_holds_models_on_each(
    here: Path, tmp_path: Path, two_nodes: str
) -> None:
    nodes: set[int] = set()

    def report(progress: Any, metrics: Any) -> None:
        nodes.update(worker.ppid() for worker in workers())

    host = {"name": "ray", "address": two_nodes, "cpus": 1}
    Experiment(config_of(host), tmp_path / "there").run(report)
    assert len(nodes) == 2
    assert apart(here, tmp_path / "there") == 0.0


def test_what_the_cluster_does_not_have_is_one_line(tmp_path: Path) -> None:
    told = r"run\.host\.gpus: 3 workers of 1 GPUs need 3, and the cluster has 0"
    with pytest.raises(ConfigError, match=told) as error:
        Experiment(config_of({"name": "ray", "gpus": 1}), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_machine_without_a_cluster_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ray looks for one among all processes of the machine, some of which may be of other tests
    monkeypatch.setattr("ray._private.services._find_address_from_flag", lambda flag: set())
    told = r"run\.host\.address: no Ray cluster at 'auto' .*ray start --head"
    with pytest.raises(ConfigError, match=told) as error:
        Experiment(config_of({"name": "ray", "address": "auto"}), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_run_takes_its_processs_cluster_and_no_other(tmp_path: Path) -> None:
    import ray

    address = ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)["gcs_address"]
    told = {"auto": "the cluster has 3", address: "the cluster has 3"}
    try:
        for name, why in {**told, "local": f"connected to the Ray cluster at {address}"}.items():
            host = {"name": "ray", "address": name, "cpus": 1000}
            with pytest.raises(ConfigError, match=why):
                Experiment(config_of(host), tmp_path / "run")
            assert ray.get_runtime_context().gcs_address == address
    finally:
        ray.shutdown()


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_start_of_a_cluster_leaves_no_process(tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(yaml.safe_dump(settings({"name": "ray"})))
    command = [sys.executable, "-m", "colearn", "train", str(given), "--out", str(tmp_path / "run")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen: dict[psutil.Process, str] = {}
    end = time.monotonic() + 600
    while not any("/raylet/raylet" in command for command in seen.values()):
        assert run.poll() is None and time.monotonic() < end, run.communicate()[0]
        seen |= started(run.pid)
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    end = time.monotonic() + 600
    while run.poll() is None and time.monotonic() < end:
        seen |= started(run.pid)
        time.sleep(0.05)
    run.kill()  # one that hangs would never end its output
    assert run.wait() == 130, run.communicate()[0]
    _, left = psutil.wait_procs(seen, timeout=60)
    assert left == []


def test_a_missing_model_is_one_line_from_a_worker(tmp_path: Path) -> None:
    config = load_config(settings({"name": "ray"}), {"models.*.path": str(tmp_path / "nothing")})
    with pytest.raises(ConfigError, match=r"models\.agent_1\.path: ") as error:
        Experiment(config, tmp_path / "run")
    assert "\n" not in str(error.value)


def test_an_interrupted_run_keeps_its_state_and_goes_on_without_ray(
    here: Path, tmp_path: Path
) -> None:
    given, out = tmp_path / "given.yaml", tmp_path / "run"
    given.write_text(yaml.safe_dump(settings({"name": "local"})))
    command = [sys.executable, "-m", "colearn", "train", str(given), "--set", "run.host.name=ray"]
    run = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 600
    while not (out / "checkpoints" / "step-2").is_dir():
        assert run.poll() is None and time.monotonic() < end, run.communicate()[0]
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    told, _ = run.communicate(timeout=600)
    assert run.returncode == 130, told
    assert "Traceback" not in told
    assert open_run(out).record().status == "interrupted"
    resumed = Experiment(open_run(out).config({"run.host": {"name": "local"}}), out, resume=True)
    assert 2 <= resumed.progress.iteration < 6
    resumed.run()
    assert apart(here, out) == 0.0
