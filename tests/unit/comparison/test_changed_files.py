"""Files that a config names: a comparison and a resumed run notice that one has changed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fabricated_runs
import huggingface_hub.constants
import pytest

from colearn.config import load_config, resolve
from colearn.errors import CheckpointError
from colearn.models.digests import file_digests
from colearn.models.sources import check_sources, compared_sources, first_change, sources_of
from colearn.registry.code_files import code_files
from colearn.registry.packages import package_digests
from colearn.runs.comparison.claim import claim
from colearn.runs.comparison.launch import launch_jobs, launched_runs
from colearn.runs.comparison.outside import check_files
from colearn.runs.comparison.plan import Plan, make_plan
from colearn.runs.record import ComparisonFolder
from colearn.runs.report.finding import changes_note
from colearn.runs.report.source import changes_between

MODULES = ("mine", "helper", "kit", "kit.scores", "wrapped")
REWARD = """
from helper import WORTH


def paid(completions, **_):
    return [WORTH for _ in completions]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a reward's module, what the module imports, rows, a model and an adapter."""
    (tmp_path / "mine.py").write_text(REWARD)
    (tmp_path / "helper.py").write_text("from kit import scores\nWORTH = scores.ONE\n")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("")
    (tmp_path / "kit" / "scores.py").write_text("ONE = 1.0\n")
    (tmp_path / "wrapped.py").write_text("SERVER = ['python', 'server.py']\n")
    (tmp_path / "server.py").write_text("print('a tool')\n")
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "say {k}"}}\n' for k in range(6)))
    model, adapter = tmp_path / "model", tmp_path / "adapter"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen2"}')
    (model / "model.safetensors").write_bytes(bytes(64))
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(model), "peft_type": "LORA", "r": 2})
    )
    (adapter / "adapter_model.safetensors").write_bytes(bytes(32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def settings(seeds: list[int], path: str = "model", **run: Any) -> dict[str, Any]:
    return {
        "task": {"name": "dataset", "path": "rows.jsonl", "reward": "mine:paid"},
        "algorithm": "magrpo",
        "models": {"*": {"path": path}},
        "agents": {"*": {"sampling": {"max_tokens": 3}}},
        "train": {"environment_steps": 40, "episodes": 1},
        "compare": {"algorithms": {"magrpo": {}, "grpo": {}}, "seeds": seeds},
        "run": run,
    }


def plan(*seeds: int, path: str = "model", **run: Any) -> Plan:
    return make_plan(load_config(settings(list(seeds), path, **run)))


@pytest.mark.parametrize(
    ("file", "field", "path"),
    [
        ("mine.py", r"task\.reward", "model"),
        ("helper.py", r"task\.reward", "model"),
        ("kit/scores.py", r"task\.reward", "model"),
        ("rows.jsonl", r"task\.path", "model"),
        ("model/model.safetensors", r"models\.\w+\.path", "model"),
        ("model/config.json", r"models\.\w+\.path", "model"),
        ("adapter/adapter_model.safetensors", r"models\.\w+\.path", "adapter"),
        ("model/model.safetensors", r"models\.\w+\.path", "adapter"),
    ],
)
def test_a_comparison_is_not_extended_with_another_file(
    folder: Path, file: str, field: str, path: str
) -> None:
    out = folder / "out"
    claim(plan(0, path=path), out, None)
    changed = folder / file
    kept = changed.read_bytes()
    changed.write_bytes(kept + b"\n")
    name = Path(file).name
    with pytest.raises(CheckpointError, match=rf"^{field}: \S*{name} is not the one [^\n]*$"):
        claim(plan(0, 1, path=path), out, None)
    changed.write_bytes(kept)
    claim(plan(0, 1, path=path), out, None)


def test_a_change_that_is_meant_is_told_and_recorded(folder: Path, capsys: Any) -> None:
    claim(plan(0), folder / "out", None)
    (folder / "kit" / "scores.py").write_text("ONE = 2.0\n")
    claim(plan(0, 1, accept_changes=True), folder / "out", None)
    assert "note: task.reward: kit/scores.py is not the one" in capsys.readouterr().err
    assert ComparisonFolder(folder / "out").record().changes == ("task.reward: kit/scores.py",)
    claim(plan(0, 1, 2), folder / "out", None)  # the files of now are known
    assert ComparisonFolder(folder / "out").record().changes == ("task.reward: kit/scores.py",)


def test_an_algorithm_that_comes_later_is_compared_with_the_files_of_the_earlier(
    folder: Path,
) -> None:
    config = load_config(settings([0]))
    claim(make_plan(config, ["magrpo"]), folder / "out", None)
    (folder / "mine.py").write_text(REWARD + "\n")
    with pytest.raises(CheckpointError, match=r"^task\.reward: mine\.py is not the one "):
        claim(make_plan(config, ["grpo"]), folder / "out", None)


def test_a_resumed_run_notices_other_code(folder: Path, capsys: Any) -> None:
    run = resolve(load_config({**settings([0]), "compare": {}}))
    before, checkpoint = sources_of(run, {}), folder / "step-1"
    assert before["task.reward"].keys() == {
        "mine.py",
        "helper.py",
        "kit/__init__.py",
        "kit/scores.py",
        "paid",
    }
    (folder / "helper.py").write_text("WORTH = 5.0\n")
    now = sources_of(run, {})
    line = r"^task\.reward: helper\.py is not the one [^\n]*run\.accept_changes=true$"
    with pytest.raises(CheckpointError, match=line):
        check_sources(checkpoint, before, now, resumes=True)
    assert check_sources(checkpoint, before, now, resumes=True, accepts=True) == (
        "task.reward: helper.py",
    )
    capsys.readouterr()
    assert check_sources(checkpoint, before, now) == ()  # an evaluation says so and goes on
    assert "note: task.reward: helper.py is not the one" in capsys.readouterr().err


@pytest.mark.parametrize("then", ["comes", "goes"])
def test_a_file_that_comes_or_goes_is_a_change(folder: Path, then: str) -> None:
    """A package's new module may be found by it, and a missing one was."""
    run = resolve(load_config({**settings([0]), "compare": {}}))
    fewer = sources_of(run, {})
    (folder / "kit" / "further.py").write_text("TWO = 2.0\n")
    more = sources_of(run, {})
    before, now = (fewer, more) if then == "comes" else (more, fewer)
    with pytest.raises(CheckpointError, match=r"^task\.reward: kit/further\.py is not the one"):
        check_sources(folder / "step-1", before, now, resumes=True)


@pytest.mark.parametrize(
    ("lora", "algorithm", "read"),
    [
        (None, {"name": "magrpo"}, False),
        ({"rank": 2}, {"name": "magrpo"}, True),
        (None, {"name": "untrained"}, True),
        (None, {"name": "magrpo", "loss": {"kl": 0.1}}, True),  # the reference is the base
    ],
)
def test_a_checkpoint_knows_the_weights_of_a_base_that_it_does_not_hold(
    folder: Path, lora: Any, algorithm: Any, read: bool
) -> None:
    """A model in full is in the checkpoint; beside an adapter the base is read again."""
    models = {"*": {"path": "model", "lora": lora}}
    changed = {"models": models, "algorithm": algorithm, "compare": {}}
    run = resolve(load_config({**settings([0]), **changed}))
    path = str(folder / "model")
    files = sources_of(run, {run.path(key): path for key in run.networks})
    (held,) = {frozenset(files[field]) for field in files if field.startswith("models.")}
    assert ("model.safetensors" in held) is read and "config.json" in held


def test_a_tool_s_program_that_a_module_names_belongs_to_its_files(folder: Path) -> None:
    assert code_files("wrapped").keys() == {"wrapped.py", "server.py"}
    assert not {"colearn", "numpy"} & {name.partition("/")[0] for name in code_files("mine")}


def test_a_command_s_program_and_module_belong_to_the_run_s_files(folder: Path) -> None:
    command = [sys.executable, "-m", "wrapped", "server.py"]
    task = {"name": "gateway", "items": "rows.jsonl", "agents": ["ada"], "command": command}
    algorithm = {"name": "magrpo", "rollout": "parallel"}
    config = {**settings([0]), "task": task, "algorithm": algorithm, "compare": {}}
    sources = sources_of(resolve(load_config(config)), {})
    assert "task.command.0" not in sources  # Python itself
    assert sources["task.command.2"].keys() == {"wrapped.py", "server.py"}
    assert sources["task.command.3"].keys() == {"server.py"}
    assert sources["task.items"].keys() == {"rows.jsonl"}


class Hub:
    """A hub with one model, and this machine's cache of it."""

    def __init__(self, cache: Path) -> None:
        self.repository, self.commit, self.weights = cache / "models--org--tiny", "a" * 40, b"1"

    def download(self, name: str, revision: str | None = None, *, allow_patterns: list[str]) -> str:
        snapshot = self.repository / "snapshots" / self.commit
        for made in (snapshot, self.repository / "refs"):
            made.mkdir(parents=True, exist_ok=True)
        (self.repository / "refs" / "main").write_text(self.commit)
        (snapshot / "config.json").write_text('{"model_type": "qwen2"}')
        if "model*.safetensors" in allow_patterns:
            (snapshot / "model.safetensors").write_bytes(self.weights)
        return str(snapshot)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.download)
    return hub


def test_weights_that_a_first_run_downloads_are_no_change(folder: Path, hub: Hub) -> None:
    planned, out = plan(0, path="org/tiny"), folder / "out"
    hub.download("org/tiny", allow_patterns=["config.json"])  # as a check of the plan does
    assert file_digests("org/tiny", "models") == {}
    claim(planned, out, None)
    hub.download("org/tiny", allow_patterns=["model*.safetensors"])  # as the first run does
    check_files(planned.resolved.values(), out)


def test_a_comparison_is_not_extended_with_newer_weights_of_a_hub(folder: Path, hub: Hub) -> None:
    claim(plan(0, path="org/tiny"), folder / "out", None)
    hub.commit = "b" * 40  # another text in the repository
    claim(plan(0, 1, path="org/tiny"), folder / "out", None)
    hub.commit, hub.weights = "c" * 40, b"2"
    with pytest.raises(CheckpointError, match=r"path: model\.safetensors is not the one with "):
        claim(plan(0, 1, 2, path="org/tiny"), folder / "out", None)


@pytest.mark.parametrize("field", ["path", "test_path"])
def test_a_comparison_is_not_extended_with_other_rows_of_a_hub(
    folder: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    rows = [{"prompt": f"say {k}"} for k in range(6)]
    hub = SimpleNamespace(load_dataset=lambda path, *, name, split: list(rows))
    monkeypatch.setitem(sys.modules, "datasets", hub)
    config = settings([0])
    config["task"][field] = "owner/said"
    claim(make_plan(load_config(config)), folder / "out", None)
    claim(make_plan(load_config(config)), folder / "out", None)
    rows[2] = {"prompt": "sing"}
    with pytest.raises(CheckpointError, match=rf"^task\.{field}: the content is not the one "):
        claim(make_plan(load_config(config)), folder / "out", None)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["sh", "-c", "exec python3 server.py --port 1"], {"server.py"}),
        (["sh", "-c", "python -m wrapped 2> rows.jsonl"], {"wrapped.py", "server.py"}),
        (["server", "--rows=rows.jsonl"], {"rows.jsonl"}),
        (["sh", "begin.sh"], {"begin.sh", "mine.py", "helper.py", "kit/__init__.py"}),
    ],
)
def test_the_words_of_a_command_belong_to_the_run_s_files(
    folder: Path, command: list[str], files: set[str]
) -> None:
    (folder / "begin.sh").write_text("#!/bin/sh\npython 'mine.py' >> rows.jsonl\n")
    task = {"name": "gateway", "items": "items.jsonl", "agents": ["ada"], "command": command}
    algorithm = {"name": "magrpo", "rollout": "parallel"}
    config = {**settings([0]), "task": task, "algorithm": algorithm, "compare": {}}
    sources = sources_of(resolve(load_config(config)), {})
    found = {n for f, names in sources.items() if f.startswith("task.command") for n in names}
    assert found - {"kit/scores.py"} == files


def test_callbacks_and_trackers_may_change(folder: Path) -> None:
    (folder / "told.py").write_text("def told(**_):\n    pass\n")
    callbacks = [{"name": "own_metric", "function": "told:told"}]
    run = resolve(load_config({**settings([0], callbacks=callbacks), "compare": {}}))
    assert not any("told.py" in files for files in sources_of(run, {}).values())


class Silent:
    def started(self, name: str, state: str) -> None: ...
    def noted(self, name: str, text: str) -> None: ...
    def advanced(self, name: str, status: Any) -> None: ...
    def ended(self, name: str, outcome: str) -> None: ...


def test_a_file_that_changes_between_two_runs_stops_the_later_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run's program edits the reward, as a person may meanwhile."""
    out, planned = folder / "out", plan(0, 1)
    claim(planned, out, None)

    fabricated_runs.make_runs(monkeypatch, "sh", "-c", f"echo >> {folder}/helper.py; false")
    failures = launch_jobs(launched_runs(planned, out), Silent(), workers=1, poll_seconds=0.01)
    reasons = [failure.reason for failure in failures]
    assert len(reasons) == 4
    assert "helper.py" not in reasons[0]
    assert all(reason.startswith("task.reward: helper.py is not") for reason in reasons[1:])


def test_a_report_says_which_files_its_runs_do_not_share() -> None:
    assert changes_note(()) == ""
    assert "task.reward: mine.py" in changes_note(["task.reward: mine.py"])


def test_code_in_folders_without_an_init_is_compared_with_what_it_imports_there(
    folder: Path,
) -> None:
    deep = folder / "plain" / "deep"
    deep.mkdir(parents=True)
    (deep / "pays.py").write_text(
        "import helper\nimport plain.one\nfrom plain import two\nfrom . import three\n"
        "from ..deep.four import FOUR\nimport json, plain.gone, colearn.errors\n"
    )
    (folder / "colearn").mkdir()  # a clone of the library is no code of the user
    (folder / "colearn" / "__init__.py").write_text("")
    for file in ("plain/one.py", "plain/two.py", "plain/deep/three.py", "plain/deep/four.py"):
        (folder / file).write_text("FOUR = 4.0\n")
    (folder / "plain" / "unused.py").write_text("")
    assert [*code_files("plain.deep.pays")] == [
        "helper.py",
        "kit/__init__.py",
        "kit/scores.py",
        "plain/deep/four.py",
        "plain/deep/pays.py",
        "plain/deep/three.py",
        "plain/one.py",
        "plain/two.py",
    ]
    for name in ("plain.deep", "plain.absent", "plain..one", f"plain.{folder}/helper"):
        assert code_files(name) == {}


FLOW = """
items: {rows}
nodes:
  - {{name: answer, role: ada, prompt: "{{question}}"}}
rewards:
  - {{score: em, field: answer, gold: gold}}
"""


def test_the_rows_that_a_workflow_s_file_names_belong_to_its_files(folder: Path) -> None:
    (folder / "flows" / "data").mkdir(parents=True)
    (folder / "flows" / "flow.yaml").write_text(FLOW.format(rows="data/asked.jsonl"))
    rows = folder / "flows" / "data" / "asked.jsonl"
    rows.write_text("".join(f'{{"question": "{k}", "gold": "{k}"}}\n' for k in range(4)))
    task = {"name": "workflow", "graph": "flows/flow.yaml"}
    algorithm = {"name": "magrpo", "rollout": "parallel"}
    run = resolve(load_config({**settings([0]), "task": task, "algorithm": algorithm}))
    before = sources_of(run, {})
    assert before["task.graph"].keys() == {"flow.yaml", "data/asked.jsonl"}
    rows.write_text(rows.read_text() + '{"question": "a", "gold": "b"}\n')
    with pytest.raises(CheckpointError, match=r"^task\.graph: data/asked\.jsonl is not the one "):
        check_sources(folder / "step-1", before, sources_of(run, {}), resumes=True)


@pytest.mark.parametrize(
    "reads",
    [
        "items = 'data/prices.json'",
        "Path(__file__).with_name('data') / 'prices.json'",
        "Path(__file__).parent / 'data' / 'prices.json'",
        "os.path.join(HERE, 'data', 'prices.json')",
        "open(f'{HERE}/data/prices.json', 'rb')",
        "pandas.read_json('data/prices.json', lines=True)",
    ],
)
def test_data_that_a_module_names_belongs_to_its_files(folder: Path, reads: str) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "prices.json").write_text("[1]")
    (folder / "mine.py").write_text(reads)
    assert code_files("mine").keys() == {"mine.py", "data/prices.json"}


@pytest.mark.parametrize("file", ["prices.tsv", "prices.toml", "judge.jinja", "prices.npy"])
def test_data_of_other_kinds_and_prompts_belong_to_a_module_s_files(
    folder: Path, file: str
) -> None:
    (folder / file).write_text("1")
    (folder / "mine.py").write_text(f"text = Path('{file}').read_bytes()")
    assert code_files("mine").keys() == {"mine.py", file}


@pytest.mark.parametrize(
    "writes",
    [
        "open('log.jsonl', 'a').write('paid')",
        "Path('log.jsonl').write_text('paid')",
        "log = Path(__file__).with_name('log.jsonl')\nwith log.open(mode='a') as file: pass",
        "class Paid:\n    log = 'log.jsonl'\n    def paid(self): open(self.log, 'w')",
        "table.to_csv('log.jsonl')",
    ],
)
def test_a_file_that_a_module_writes_may_change(folder: Path, writes: str) -> None:
    (folder / "log.jsonl").write_text("{}")
    (folder / "mine.py").write_text(writes)
    assert code_files("mine").keys() == {"mine.py"}


def test_a_config_that_a_module_s_program_begins_may_change(folder: Path) -> None:
    (folder / "run.yaml").write_text("task: {name: dataset, path: rows.jsonl}\n")
    (folder / "mine.py").write_text("import colearn\ncolearn.train('run.yaml')\n")
    assert code_files("mine").keys() == {"mine.py"}


@pytest.mark.parametrize(
    ("loads", "file"),
    [
        ("importlib.import_module('further')", "further.py"),
        ("import_module('plain.further')", "plain/further.py"),
        ("__import__('further')", "further.py"),
        ("import_module('.further', __package__)", "further.py"),
    ],
)
def test_a_module_that_is_imported_by_its_name_as_text_belongs_to_the_files(
    folder: Path, loads: str, file: str
) -> None:
    (folder / "plain").mkdir()
    (folder / file).write_text("import helper\n")
    (folder / "mine.py").write_text(loads)
    assert {"mine.py", file, "helper.py"} <= code_files("mine").keys()


@pytest.mark.parametrize("changed", ["critic-ada/critic.json", "critic-ben/critic.json"])
def test_every_critic_of_a_folder_belongs_to_a_comparison_s_files(
    folder: Path, changed: str
) -> None:
    for name in ("ada", "ben"):
        critic = folder / "critics" / f"critic-{name}"
        critic.mkdir(parents=True)
        for file in ("config.json", "model.safetensors", "critic.json"):
            (critic / file).write_text("{}")
    config = {
        **settings([0]),
        "task": {**settings([0])["task"], "agents": ["ada", "ben"]},
        "algorithm": "collm_dc",
        "critic": {"from": "critics"},
    }
    before = compared_sources(resolve(load_config(config)))
    (folder / "critics" / changed).write_text('{"bias": 1.0}')
    now = compared_sources(resolve(load_config(config)))
    different = [field for field in before if before[field].files != now[field].files]
    assert different == [f"critic.from.{changed.partition('/')[0]}"]


@pytest.mark.parametrize(
    ("earlier", "later", "changes"),
    [
        ({"mine.py": "1"}, {"mine.py": "1", "helper.py": "2"}, ("task.reward: helper.py",)),
        ({"mine.py": "1"}, {"mine.py": "2"}, ("task.reward: mine.py",)),
        ({"a.json": "1", "w.safetensors": "2"}, {"a.json": "1"}, ()),  # one keeps no weights
        ({"paid": "1"}, {"mine.py": "2", "paid": "1"}, ()),  # one had it as an object
    ],
)
def test_a_report_names_a_file_that_only_one_run_has(
    earlier: dict[str, str], later: dict[str, str], changes: tuple[str, ...]
) -> None:
    settings = {"task": {"reward": "mine:paid"}}
    runs = [
        with_sources({"task.reward": earlier}, settings),
        with_sources({"task.reward": later}, settings),
    ]
    assert changes_between(runs, ()) == changes


@pytest.mark.parametrize(
    ("other", "changes"),
    [
        ({"task": {"name": "tldr"}}, ("critic.path: config.json",)),
        ({"task": {"name": "tldr"}, "wrapper": "single"}, ()),
        ({"task": {"name": "tldr", "variant": "single"}}, ()),
    ],
)
def test_an_embedded_model_made_for_another_task_is_no_changed_file(
    other: dict[str, Any], changes: tuple[str, ...]
) -> None:
    critic = {"critic": {"path": "embedded-tiny:2"}}
    runs = [
        with_sources({"critic.path": {"config.json": "1"}}, {"task": {"name": "tldr"}, **critic}),
        with_sources({"critic.path": {"config.json": "2"}}, {**other, **critic}),
    ]
    assert changes_between(runs, ()) == changes


def with_sources(sources: dict[str, dict[str, str]], settings: dict[str, Any]) -> Any:
    """A run whose checkpoint has these digests."""
    checkpoints = SimpleNamespace(all=lambda: [SimpleNamespace(sources=sources)])
    folder = SimpleNamespace(checkpoints=checkpoints, settings=lambda: settings)
    return SimpleNamespace(record=SimpleNamespace(changes=()), folder=folder)


def test_the_installed_package_of_a_task_belongs_to_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pettingzoo", raising=False)
    (folder / "pettingzoo").mkdir()
    (folder / "pettingzoo" / "__init__.py").write_text("VERSION = 1\n")
    before = package_digests("pettingzoo", {})
    (folder / "pettingzoo" / "__init__.py").write_text("VERSION = 2\n")
    assert first_change(before, package_digests("pettingzoo", {})) == "pettingzoo"


@pytest.mark.parametrize("python", [{}, {"python": sys.executable}])
def test_an_environment_of_verifiers_belongs_to_the_run_s_files(
    folder: Path, python: dict[str, str]
) -> None:
    settings = {"env": "owner/reverse-text", **python}
    (folder / "reverse_text.py").write_text("ONE = 1.0\n")
    before = package_digests("verifiers", settings)
    (folder / "reverse_text.py").write_text("ONE = 2.0\n")
    assert first_change(before, package_digests("verifiers", settings)) == "reverse_text"


def test_a_python_that_cannot_be_run_has_no_packages(folder: Path) -> None:
    assert package_digests("verifiers", {"env": "rooms", "python": str(folder / "none")}) == {}


def test_the_package_that_registers_a_task_belongs_to_the_run_s_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = resolve(load_config({**settings([0]), "compare": {}}))
    monkeypatch.setattr("colearn.models.sources.installed", lambda _: {"dataset": "kit:Rows"})
    assert sources_of(run, {})["task.name"].keys() == {"kit/__init__.py", "kit/scores.py"}
