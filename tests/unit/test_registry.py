"""Names to classes: shipped, by entry point, or module:Class."""

import subprocess
import sys

import pytest

from colearn.config import build_algorithm, build_task, load_config
from colearn.errors import ConfigError
from colearn.registry import algorithm_class, names, task_class


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that can be imported."""

    def write(name, code):
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    return write


def test_a_class_without_a_name_is_found_by_its_module(module):
    code = "from colearn.contract import DecPOMDP\nclass Lonely(DecPOMDP): pass\n"
    module("lonely_task", code)
    assert task_class("lonely_task:Lonely").__name__ == "Lonely"


def test_a_module_that_is_not_there_is_one_line_with_the_remedy():
    with pytest.raises(ConfigError, match="no module 'nowhere' for 'nowhere:Task'; run from"):
        task_class("nowhere:Task")


def test_a_package_that_is_not_there_is_one_line_too():
    with pytest.raises(ConfigError, match=r"no module 'nowhere' for 'nowhere\.tasks:Task'"):
        task_class("nowhere.tasks:Task")


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"module 'colearn\.seeding' has no 'Task'"):
        task_class("colearn.seeding:Task")


def test_an_error_inside_the_module_is_not_hidden(module):
    module("broken_task", "import not_installed_anywhere\n")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        task_class("broken_task:Task")


def test_a_wrong_attribute_inside_the_module_is_not_told_as_a_missing_class(module):
    module("misspelt_task", "import math\nmath.sqroot\nclass Task: pass\n")
    with pytest.raises(AttributeError, match="sqroot"):
        task_class("misspelt_task:Task")


def test_a_task_that_leaves_methods_out_is_one_line_with_their_names(module):
    code = (
        "from colearn.contract import DecPOMDP\nclass Begun(DecPOMDP):\n"
        "    def items(self, split): return [0]\n"
    )
    module("begun_task", code)
    config = load_config({"task": {"name": "begun_task:Begun"}, "models": {}})
    with pytest.raises(
        ConfigError, match=r"task\.name: .*Begun has no metrics, observe, reset, step"
    ):
        build_task(config)


def test_an_algorithm_that_names_no_parts_is_one_line(module):
    code = (
        "from dataclasses import dataclass\nfrom colearn.contract import Algorithm\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Begun(Algorithm): pass\n"
    )
    module("begun_algorithm", code)
    name = "begun_algorithm:Begun"
    config = load_config({"task": {"name": "any"}, "algorithm": {"name": name}, "models": {}})
    with pytest.raises(ConfigError, match=r"algorithm\.name: .*Begun has no parts"):
        build_algorithm(config)


def test_shipped_names_come_with_where_they_live():
    assert names("tasks")["str_build"] == "colearn.tasks.str_build:StrBuild"


def test_a_distribution_that_joins_the_path_later_adds_its_names(tmp_path, monkeypatch):
    assert "puzzle" not in names("tasks")
    places = tmp_path / "puzzles-1.0.dist-info"
    places.mkdir()
    (places / "METADATA").write_text("Metadata-Version: 2.1\nName: puzzles\nVersion: 1.0\n")
    (places / "entry_points.txt").write_text(
        "[colearn.tasks]\npuzzle = puzzles:Puzzle\nstr_build = puzzles:Other\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert names("tasks")["puzzle"] == "puzzles:Puzzle"
    assert names("tasks")["str_build"] == "colearn.tasks.str_build:StrBuild"


@pytest.mark.parametrize("target", ("subprocess:Popen", "os:system", "colearn.errors:nearest"))
def test_what_is_no_task_is_refused_uncalled(target):
    with pytest.raises(ConfigError, match=r"task: '.*' is no class of colearn.contract.DecPOMDP"):
        task_class(target)


def test_a_task_is_no_algorithm():
    with pytest.raises(ConfigError, match=r"is no class of colearn.contract.Algorithm"):
        algorithm_class("colearn.tasks.str_build:StrBuild")


@pytest.mark.parametrize("target", (":Popen", "subprocess:", ".os:system", "a b:c", "os:path.x"))
def test_what_is_no_module_and_class_is_one_line(target):
    with pytest.raises(ConfigError, match="is no module:Class; give both as names"):
        task_class(target)


def test_a_config_that_names_a_program_runs_nothing(tmp_path):
    left = tmp_path / "left"
    task = {"name": "subprocess:Popen", "args": ["touch", str(left)]}
    config = load_config({"task": task, "models": {}})
    with pytest.raises(ConfigError, match="subprocess:Popen"):
        build_task(config)
    assert not left.exists()


@pytest.mark.parametrize("command", ("-m", "-c"), ids=["module", "console script"])
def test_a_file_in_the_current_folder_stands_behind_the_librarys(command, tmp_path):
    (tmp_path / "yaml.py").write_text("raise SystemExit('mine')\n")
    words = ["colearn"] if command == "-m" else ["from colearn.cli import main; main()"]
    safe = [] if command == "-m" else ["-P"]
    run = subprocess.run(
        [sys.executable, *safe, command, *words, "configs"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_task_in_the_current_folder_is_found(tmp_path):
    (tmp_path / "here.py").write_text("class Task: pass\n")
    run = subprocess.run(
        [sys.executable, "-m", "colearn", "check", "here:Task"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "'here:Task' is no class of" in run.stderr
