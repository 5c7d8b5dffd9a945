"""Same seed, same run; stopped and resumed, still the same run."""

from __future__ import annotations

import json
import shutil
import signal

import pytest
from safetensors.torch import load_file
from tiny import register, save_model

from colearn.config import Config
from colearn.errors import CheckpointError, ConfigError
from colearn.runs.record import RunFolder
from colearn.training.interruption import Interrupted
from colearn.training.learners.learner import NetworkLearner
from colearn.training.loop import Experiment

ITERATIONS = 4
SLOW = pytest.mark.slow
MORE_STOPS = [(2, 1), (4, 1), (1, 2), (2, 2), (4, 2)]
"""(iteration of the stop, iterations between checkpoints)"""


class Stop(Exception):
    """Stands for whatever ends a run from outside."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return save_model(folder / "actor"), save_model(folder / "critic", "llama", seed=1)


@pytest.fixture(autouse=True)
def notes(monkeypatch):
    register(monkeypatch, notes="tiny:Notes")


def config_of(paths, **changes):
    """CC with two epochs of minibatches: critic, actors, old log-probs and shuffles all matter."""
    actor, critic = paths
    settings = {
        "task": {"name": "notes", "horizon": 2, "items": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": actor, "learning_rate": 1e-3, "lora": {"rank": 2}}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": critic, "learning_rate": 1e-3},
        "train": {
            "environment_steps": ITERATIONS * 4,
            "episodes": 2,
            "epochs": 2,
            "minibatch": 2,
        },
        "evaluation": {"every": 2, "transcripts": 1},
        "run": {"device": "cpu", "checkpoint_every": 1},
    }
    for key, value in changes.items():
        settings[key] = {**settings[key], **value}
    return Config.model_validate(settings)


def finished(paths, folder, **changes):
    Experiment(config_of(paths, **changes), folder).run()
    return folder


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    """A run that nothing interrupted, checkpointed at every iteration."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield finished(models, tmp_path_factory.mktemp("whole") / "run")


def lines(folder, name):
    """Without what a clock says."""
    records = [json.loads(text) for text in (folder / name).read_text().splitlines()]
    for line in records:
        line.pop("wall_seconds", None)
        for key in [key for key in line.get("metrics", {}) if "seconds" in key]:
            line["metrics"].pop(key)
    return records


def weights(folder):
    """Weights and optimiser state of the newest checkpoint, and its numbers."""
    newest = max((folder / "checkpoints").glob("step-*"), key=lambda p: int(p.name[5:]))
    numbers = json.loads((newest / "progress.json").read_text())
    numbers.pop("wall_seconds")
    tensors = {
        f"{path.parent.name}/{path.name}/{name}": tensor
        for path in sorted(newest.glob("*/*.safetensors"))
        for name, tensor in load_file(path).items()
    }
    return numbers, tensors


def assert_same_run(one, other):
    assert lines(one, "metrics.jsonl") == lines(other, "metrics.jsonl")
    assert lines(one, "episodes.jsonl") == lines(other, "episodes.jsonl")
    (numbers, tensors), (others, again) = weights(one), weights(other)
    assert numbers == others
    assert tensors.keys() == again.keys() and tensors
    odd = [name for name in tensors if not tensors[name].equal(again[name])]
    assert odd == []


def stop_at(iteration, *, kind):
    """A report callback that raises when told of this iteration's update or evaluation."""

    def report(progress, metrics):
        evaluated = any(key.startswith("evaluation/") for key in metrics)
        if progress.iteration == iteration and evaluated == (kind == "evaluation"):
            raise Stop

    return report


def test_the_same_seed_gives_the_same_run(models, whole, tmp_path):
    assert_same_run(whole, finished(models, tmp_path / "again"))


def test_another_seed_gives_another_run(models, whole, tmp_path):
    other = finished(models, tmp_path / "other", run={"seed": 1})
    assert lines(whole, "metrics.jsonl") != lines(other, "metrics.jsonl")


def test_a_run_trains_and_records_what_it_should(whole):
    records = lines(whole, "metrics.jsonl")
    assert [(line["kind"], line["iteration"]) for line in records] == [
        ("evaluation", 0),
        ("update", 1),
        ("update", 2),
        ("evaluation", 2),
        ("update", 3),
        ("update", 4),
        ("evaluation", 4),
    ]
    assert json.loads((whole / "run.json").read_text())["status"] == "finished"


@pytest.mark.parametrize(
    ("iteration", "every"),
    [(1, 1), (3, 2), *[pytest.param(*case, marks=SLOW) for case in MORE_STOPS]],
)
def test_a_run_stopped_after_an_update_and_resumed_is_the_uninterrupted_one(
    models, whole, tmp_path, iteration, every
):
    folder = tmp_path / "run"
    config = config_of(models, run={"checkpoint_every": every})
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(iteration, kind="update"))
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


@pytest.mark.parametrize("iteration", [0, *[pytest.param(n, marks=SLOW) for n in (2, 4)]])
def test_a_run_stopped_after_an_evaluation_and_resumed_is_the_uninterrupted_one(
    models, whole, tmp_path, iteration
):
    folder, config = tmp_path / "run", config_of(models)
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(iteration, kind="evaluation"))
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


@pytest.mark.slow
def test_a_run_stopped_at_every_iteration_is_the_uninterrupted_one(models, whole, tmp_path):
    """The checkpoint of the iteration it stops in is not written yet: each start repeats one."""
    folder, config = tmp_path / "run", config_of(models)
    for iteration in range(1, ITERATIONS + 1):
        with pytest.raises(Stop):
            stop = stop_at(iteration, kind="update")
            Experiment(config, folder, resume=iteration > 1).run(stop)
        if iteration < ITERATIONS:
            with pytest.raises(Stop):
                stop = stop_at(iteration + 1, kind="update")
                Experiment(config, folder, resume=True).run(stop)
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": {"name": "magrpo", "rollout": {"k": 2}}, "train": {"environment_steps": 24}},
        pytest.param({"models": {"*": {"learning_rate": 1e-3, "lora": None}}}, marks=SLOW),
        {"algorithm": {"loss": {"kl": 0.1, "entropy": 0.01}, "value_loss": {"clip": 0.1}}},
    ],
    ids=["group", "full weights", "reference"],
)
def test_other_runs_resume_bit_for_bit_too(models, tmp_path, changes):
    if "models" in changes:
        changes["models"]["*"]["path"] = models[0]
    config = config_of(models, **changes)
    uninterrupted = finished(models, tmp_path / "whole", **changes)
    with pytest.raises(Stop):
        Experiment(config, tmp_path / "run").run(stop_at(2, kind="update"))
    Experiment(config, tmp_path / "run", resume=True).run()
    assert_same_run(uninterrupted, tmp_path / "run")


def test_random_rewards_found_before_a_stop_are_remembered(models, tmp_path):
    optimism = {"expectile": 0.9, "if_deterministic": True}
    config = config_of(models, algorithm={"advantage": optimism})
    stopped = Experiment(config, tmp_path / "run")
    stopped.updater.random_rewards = True
    with pytest.raises(Stop):
        stopped.run(stop_at(2, kind="update"))
    resumed = Experiment(config, tmp_path / "run", resume=True)
    assert resumed.updater.random_rewards
    resumed.run()
    records = lines(tmp_path / "run", "metrics.jsonl")
    told = [r["metrics"]["random_rewards"] for r in records if r["kind"] == "update"]
    assert told == [1.0] * ITERATIONS


def test_resuming_a_finished_run_changes_nothing(models, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    Experiment(config_of(models), folder, resume=True).run()
    assert_same_run(whole, folder)


def test_a_line_cut_off_in_mid_write_is_dropped_on_resuming(models, whole, tmp_path):
    folder, config = tmp_path / "run", config_of(models)
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(3, kind="update"))
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "upd')
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


@pytest.mark.parametrize(
    "name",
    [
        "progress.json",
        "actor-ada/weights.safetensors",
        "actor-ben/optimizer.safetensors",
        "critic-team/learner.json",
    ],
)
@pytest.mark.parametrize(
    "damage", ["a flipped bit", *[pytest.param(d, marks=SLOW) for d in ("cut short", "missing")]]
)
def test_of_a_damaged_checkpoint_the_one_before_is_taken_and_it_is_said(
    models, whole, tmp_path, capsys, name, damage
):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    spoil(folder / "checkpoints" / f"step-{ITERATIONS}" / name, damage)
    experiment = Experiment(config_of(models), folder, resume=True)
    assert experiment.progress.iteration == ITERATIONS - 1
    told = capsys.readouterr().err
    assert f"step-{ITERATIONS}/{name}" in told
    assert f"the checkpoint of iteration {ITERATIONS - 1} is used instead" in told
    experiment.record.close()


def spoil(path, damage):
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "missing":
        path.unlink()
    elif damage == "cut short":
        path.write_bytes(content[:middle])
    else:
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


def test_a_run_that_goes_on_before_a_damaged_checkpoint_is_the_uninterrupted_one(
    models, whole, tmp_path
):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    spoil(folder / "checkpoints" / "step-4" / "actor-ada" / "weights.safetensors", "a flipped bit")
    Experiment(config_of(models), folder, resume=True).run()
    assert_same_run(whole, folder)


def test_with_every_checkpoint_damaged_there_is_one_line_and_nothing_is_lost(
    models, whole, tmp_path
):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for checkpoint in (folder / "checkpoints").iterdir():
        spoil(checkpoint / "progress.json", "a flipped bit")
    with pytest.raises(CheckpointError, match="no other checkpoint is intact: delete") as caught:
        Experiment(config_of(models), folder, resume=True)
    assert "\n" not in str(caught.value)
    assert lines(folder, "metrics.jsonl") == lines(whole, "metrics.jsonl")


def test_a_finished_run_is_extended(models, whole, tmp_path):
    """Two more iterations: the same updates as a run that was that long from the start."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    longer = {"train": {"environment_steps": (ITERATIONS + 2) * 4}}
    Experiment(config_of(models, **longer), folder, resume=True).run()
    assert_same_run(finished(models, tmp_path / "longer", **longer), folder)


def test_the_best_checkpoint_is_kept_beside_the_newest(models, tmp_path):
    folder = finished(models, tmp_path / "run", run={"keep_checkpoints": 1})
    evaluations = [line for line in lines(folder, "metrics.jsonl") if line["kind"] == "evaluation"]
    best = max(evaluations, key=lambda line: line["metrics"]["return"])["iteration"]
    kept = {path.name for path in (folder / "checkpoints").iterdir()}
    assert kept == {f"step-{best}", f"step-{ITERATIONS}"}
    record = json.loads((folder / "run.json").read_text())
    assert record["best"]["iteration"] == best
    assert RunFolder(folder).checkpoints.choose("best").iteration == best


def test_the_best_checkpoint_follows_the_headline_metric_and_its_direction(models, tmp_path):
    judged = {"headline": {"metric": "return", "better": "lower"}}
    folder = finished(models, tmp_path / "run", evaluation={"every": 1, **judged})
    evaluations = [line for line in lines(folder, "metrics.jsonl") if line["kind"] == "evaluation"]
    returns = {line["iteration"]: line["metrics"]["return"] for line in evaluations}
    assert len(set(returns.values())) > 1
    best = min(returns, key=lambda iteration: returns[iteration])
    assert RunFolder(folder).checkpoints.choose("best").iteration == best
    record = json.loads((folder / "run.json").read_text())
    assert record["headline"] == judged["headline"]


def test_a_headline_metric_that_no_evaluation_has_is_one_line(models, tmp_path):
    with pytest.raises(ConfigError, match=r"evaluation.headline: no metric 'retrun'.*return"):
        finished(models, tmp_path / "run", evaluation={"headline": {"metric": "retrun"}})


def test_a_checkpoint_is_written_when_its_minutes_are_over(models, tmp_path, monkeypatch):
    """Each look at the clock is four minutes after the one before: due at every third."""
    clock = iter(range(0, 100_000, 240))
    monkeypatch.setattr("colearn.training.checkpoint_manager.monotonic", lambda: next(clock))
    folder = tmp_path / "run"
    told = {"checkpoint_every": None, "checkpoint_minutes": 10, "keep_checkpoints": 9}
    config = config_of(models, run=told, evaluation={"every": 100})
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(4, kind="update"))
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"step-0", "step-3"}


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGINT, "update"),
        (signal.SIGTERM, "evaluation"),
        pytest.param(signal.SIGINT, "evaluation", marks=SLOW),
        pytest.param(signal.SIGTERM, "update", marks=SLOW),
    ],
)
def test_a_run_told_to_stop_keeps_its_state_and_goes_on_from_there(
    models, whole, tmp_path, number, kind
):
    folder = tmp_path / "run"
    config = config_of(models, run={"checkpoint_every": None})

    def tell(progress, metrics):
        if progress.iteration == 2 and ("evaluation/return" in metrics) == (kind == "evaluation"):
            signal.raise_signal(number)

    before = signal.getsignal(number)
    with pytest.raises(Interrupted):
        Experiment(config, folder).run(tell)
    assert signal.getsignal(number) is before
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    again = Experiment(config, folder, resume=True)
    assert again.progress.iteration == 2
    again.run()
    assert_same_run(whole, folder)


def test_a_signal_in_an_update_says_that_it_is_heard(models, tmp_path, monkeypatch, capfd):
    experiment = Experiment(config_of(models), tmp_path / "run")
    step = NetworkLearner.step

    def told(self, done=0.0):
        if experiment.interruption._received is None:
            signal.raise_signal(signal.SIGTERM)
            assert "note: SIGTERM: the run saves its state and ends" in capfd.readouterr().err
        return step(self, done)

    monkeypatch.setattr(NetworkLearner, "step", told)
    with pytest.raises(Interrupted):
        experiment.run()


def test_a_signal_in_an_update_waits_for_its_end(models, whole, tmp_path, monkeypatch):
    folder, config = tmp_path / "run", config_of(models, run={"checkpoint_every": None})
    experiment = Experiment(config, folder)
    step = NetworkLearner.step

    def told(self, done=0.0):
        if experiment.progress.iteration == 1:
            signal.raise_signal(
                signal.SIGTERM
            ) if experiment.interruption._received is None else None
        return step(self, done)

    monkeypatch.setattr(NetworkLearner, "step", told)
    with pytest.raises(Interrupted):
        experiment.run()
    monkeypatch.undo()
    register(monkeypatch, notes="tiny:Notes")
    again = Experiment(config, folder, resume=True)
    assert again.progress.iteration == 2
    again.run()
    assert_same_run(whole, folder)


def test_two_processes_do_not_write_one_folder(models, tmp_path):
    folder, config = tmp_path / "run", config_of(models)
    first = Experiment(config, folder)
    with pytest.raises(CheckpointError, match="another process is at work in this folder"):
        Experiment(config, folder, resume=True)
    first.run()
    assert lines(folder, "metrics.jsonl")


def test_a_checkpoint_left_half_written_is_not_taken_for_a_whole_one(models, whole, tmp_path):
    folder, config = tmp_path / "run", config_of(models)
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(3, kind="update"))
    step = folder / "checkpoints" / "step-2"
    shutil.copytree(step, step.with_name(".step-3.partial"))
    (step.with_name(".step-3.partial") / "progress.json").unlink()
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


def test_only_the_newest_checkpoints_are_kept(whole):
    best = json.loads((whole / "run.json").read_text())["best"]["iteration"]
    kept = {path.name for path in (whole / "checkpoints").iterdir()}
    assert kept == {"step-3", "step-4", f"step-{best}"}


def test_a_folder_that_holds_a_run_is_refused_without_resume(models, whole):
    with pytest.raises(CheckpointError, match="holds a run; continue it with --resume"):
        Experiment(config_of(models), whole)


def test_a_folder_that_holds_another_run_is_refused(models, whole):
    with pytest.raises(CheckpointError, match="holds a run of another config"):
        Experiment(config_of(models, run={"seed": 5}), whole, resume=True)


def test_weights_of_another_model_are_refused(models, whole, tmp_path):
    folder = tmp_path / "run"
    config = config_of(models, models={"*": {"path": models[0], "lora": {"rank": 4}}})
    with pytest.raises(Stop):
        Experiment(config, folder).run(stop_at(1, kind="update"))
    shutil.copytree(whole / "checkpoints", folder / "checkpoints", dirs_exist_ok=True)
    with pytest.raises(CheckpointError, match="has shape"):
        Experiment(config, folder, resume=True)


def test_a_config_error_leaves_no_folder_behind(models, tmp_path):
    """Else the mended config would be refused, because the folder holds a run."""
    from colearn.errors import ConfigError

    with pytest.raises(ConfigError):
        Experiment(config_of(models, algorithm={"name": "nothing"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
