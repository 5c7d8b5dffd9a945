"""Same seed, same run; stopped and resumed, still the same run."""

from __future__ import annotations

import json
import shutil
import signal

import pytest
import yaml
from safetensors.torch import load_file
from tiny import register, save_model

from colearn.config import Config
from colearn.errors import CheckpointError, ConfigError
from colearn.runs.record import RunFolder
from colearn.training.interruption import SIGNALS, Interrupted
from colearn.training.learners.learner import NetworkLearner
from colearn.training.loop import Experiment

ITERATIONS = 4


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
    """CC with two epochs of minibatches: critic, actors, old log-probs and shuffles all matter. The
    lowest return is the best."""
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
        "evaluation": {
            "every": 2,
            "transcripts": 1,
            "headline": {"metric": "return", "better": "lower"},
        },
        "run": {"device": "cpu", "checkpoint_every": 1},
    }
    for key, value in changes.items():
        settings[key] = {**settings[key], **value}
    return Config.model_validate(settings)


@pytest.fixture(scope="module")
def whole(models, tmp_path_factory):
    """A run that nothing interrupted, checkpointed at every iteration."""
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        folder = tmp_path_factory.mktemp("whole") / "run"
        Experiment(config_of(models), folder).run()
        yield folder


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of that run, to be changed."""
    return shutil.copytree(whole, tmp_path / "run")


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


def test_another_seed_plays_other_episodes(models, tmp_path):
    said = []
    for seed in (0, 1):
        experiment = Experiment(config_of(models, run={"seed": seed}), tmp_path / str(seed))
        nodes = [node for tree in experiment.trees() for node in tree.nodes]
        said.append([action.tokens for node in nodes for action in node.actions.values()])
        experiment.record.close()
    assert said[0] != said[1]


def test_a_run_that_fails_and_is_resumed_is_the_uninterrupted_one(models, whole, tmp_path):
    """The checkpoint of the iteration that it stops in is not written yet: each start repeats one.
    Its first process ended when it had written nothing but the config, and the last failure leaves
    half a line of metrics and half a checkpoint."""
    folder, config = tmp_path / "run", config_of(models)
    folder.mkdir()
    shutil.copy(whole / "config.yaml", folder)
    with pytest.raises(Stop):
        Experiment(config, folder, resume=True).run(stop_at(1, kind="update"))
    with pytest.raises(Stop):
        Experiment(config, folder, resume=True).run(stop_at(2, kind="evaluation"))
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "upd')
    partial = folder / "checkpoints" / ".step-2.partial"
    shutil.copytree(folder / "checkpoints" / "step-1", partial)
    (partial / "progress.json").unlink()
    Experiment(config, folder, resume=True).run()
    assert_same_run(whole, folder)


def test_a_run_told_to_stop_keeps_its_state_and_goes_on_from_there(
    models, whole, tmp_path, monkeypatch, capfd
):
    """Told within the second update, it stops behind it; told at the evaluation, at once."""
    folder, config = tmp_path / "run", config_of(models, run={"checkpoint_every": None})
    experiment, step = Experiment(config, folder), NetworkLearner.step

    def told(self, done=0.0):
        if experiment.progress.iteration == 1 and experiment.interruption._received is None:
            signal.raise_signal(signal.SIGTERM)
            assert "note: SIGTERM: the run saves its state and ends" in capfd.readouterr().err
        return step(self, done)

    monkeypatch.setattr(NetworkLearner, "step", told)
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(Interrupted):
        experiment.run()
    monkeypatch.setattr(NetworkLearner, "step", step)
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"

    def tell(progress, metrics):
        if "evaluation/return" in metrics:
            signal.raise_signal(signal.SIGINT)

    again = Experiment(config, folder, resume=True)
    assert again.progress.iteration == 2
    with pytest.raises(Interrupted):
        again.run(tell)
    assert [signal.getsignal(number) for number in SIGNALS] == before
    last = Experiment(config, folder, resume=True)
    assert (last.progress.iteration, last.progress.evaluated) == (2, 2)
    last.run()
    assert_same_run(whole, folder)


def test_resuming_a_finished_run_changes_nothing(models, whole, copied):
    Experiment(config_of(models), copied, resume=True).run()
    assert_same_run(whole, copied)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("progress.json", "a flipped bit"),
        ("actor-ben/optimizer.safetensors", "cut short"),
        ("critic-team/learner.json", "missing"),
    ],
)
def test_of_a_damaged_checkpoint_the_one_before_is_taken_and_it_is_said(
    models, copied, capsys, name, damage
):
    spoil(copied / "checkpoints" / f"step-{ITERATIONS}" / name, damage)
    experiment = Experiment(config_of(models), copied, resume=True)
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
    models, whole, copied
):
    spoil(copied / "checkpoints" / "step-4" / "actor-ada" / "weights.safetensors", "a flipped bit")
    Experiment(config_of(models), copied, resume=True).run()
    assert_same_run(whole, copied)


def test_with_every_checkpoint_damaged_there_is_one_line_and_nothing_is_lost(models, whole, copied):
    for checkpoint in (copied / "checkpoints").iterdir():
        spoil(checkpoint / "progress.json", "a flipped bit")
    with pytest.raises(CheckpointError, match="no other checkpoint is intact: delete") as caught:
        Experiment(config_of(models), copied, resume=True)
    assert "\n" not in str(caught.value)
    assert lines(copied, "metrics.jsonl") == lines(whole, "metrics.jsonl")


def test_a_finished_run_is_extended(models, whole, tmp_path):
    """Two more iterations: the same updates as a run that was that long from the start."""
    shorter = {"train": {"environment_steps": (ITERATIONS - 2) * 4}}
    Experiment(config_of(models, **shorter), tmp_path / "run").run()
    Experiment(config_of(models), tmp_path / "run", resume=True).run()
    assert_same_run(whole, tmp_path / "run")


def test_the_newest_checkpoints_are_kept_and_the_best_by_its_metric_and_direction(whole):
    evaluations = [line for line in lines(whole, "metrics.jsonl") if line["kind"] == "evaluation"]
    returns = {line["iteration"]: line["metrics"]["return"] for line in evaluations}
    assert len(set(returns.values())) > 1
    best = min(returns, key=lambda iteration: returns[iteration])
    kept = {path.name for path in (whole / "checkpoints").iterdir()}
    assert kept == {"step-3", "step-4", f"step-{best}"}
    assert RunFolder(whole).checkpoints.choose("best").iteration == best
    record = json.loads((whole / "run.json").read_text())
    assert record["best"] == {"iteration": best, "value": returns[best]}
    assert record["headline"] == {"metric": "return", "better": "lower"}


def test_a_headline_metric_that_no_evaluation_has_is_one_line(models, tmp_path):
    config = config_of(models, evaluation={"headline": {"metric": "retrun"}})
    with pytest.raises(ConfigError, match=r"evaluation.headline: no metric 'retrun'.*return"):
        Experiment(config, tmp_path / "run")


def test_two_processes_do_not_write_one_folder(models, tmp_path, monkeypatch):
    monkeypatch.setattr("colearn.runs.record.place._SECONDS", 0.1)
    folder, config = tmp_path / "run", config_of(models)
    first = Experiment(config, folder)
    with pytest.raises(CheckpointError, match="another process is at work in this folder"):
        Experiment(config, folder, resume=True)
    first.close()
    Experiment(config, folder, resume=True).record.close()


def test_a_folder_that_holds_a_run_is_refused_without_resume(models, whole):
    with pytest.raises(CheckpointError, match="holds a run; continue it with --resume"):
        Experiment(config_of(models), whole)


def test_a_folder_that_holds_another_run_is_refused(models, whole):
    with pytest.raises(CheckpointError, match="holds a run of another config"):
        Experiment(config_of(models, run={"seed": 5}), whole, resume=True)


def test_weights_of_another_model_are_refused(models, copied):
    settings = yaml.safe_load((copied / "config.yaml").read_text())
    for model in settings["models"].values():
        model["lora"]["rank"] = 4
    (copied / "config.yaml").write_text(yaml.safe_dump(settings))
    with pytest.raises(CheckpointError, match="has shape"):
        Experiment(RunFolder(copied).config(), copied, resume=True)


def test_a_config_error_leaves_no_folder_behind(models, tmp_path):
    """Else the mended config would be refused, because the folder holds a run."""
    with pytest.raises(ConfigError):
        Experiment(config_of(models, algorithm={"name": "nothing"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
