"""Names to classes: shipped, by entry point, or module:Class."""

import subprocess
import sys

import pytest

from colearn.config import (
    build_algorithm,
    build_part,
    build_task,
    build_tracker,
    load_config,
    part_name,
)
from colearn.contract import GeneratorKind
from colearn.errors import ConfigError
from colearn.registry import (
    KINDS,
    algorithm_class,
    check_name,
    load,
    names,
    task_class,
    without_own_code,
)
from colearn.runs.report.settings import settings_table


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that can be imported."""

    def write(name, code):
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    return write


def test_a_class_without_a_name_is_found_by_its_module(module):
    code = "from colearn.tasks.str_build import StrBuild\nclass Lonely(StrBuild): pass\n"
    module("lonely_task", code)
    assert task_class("lonely_task:Lonely").__name__ == "Lonely"


def test_a_module_that_is_not_there_is_one_line_with_the_remedy():
    with pytest.raises(ConfigError, match="no module 'nowhere' for 'nowhere:Task'; put it beside"):
        task_class("nowhere:Task")


def test_a_package_that_is_not_there_is_one_line_too():
    with pytest.raises(ConfigError, match=r"no module 'nowhere' for 'nowhere\.tasks:Task'"):
        task_class("nowhere.tasks:Task")


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"module 'colearn\.contract\.seeding' has no 'Task'"):
        task_class("colearn.contract.seeding:Task")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = 1\nimport not_installed_anywhere\n", "ModuleNotFoundError: .*anywhere.*, line 2"),
        ("import math\nmath.sqroot\n", "AttributeError: .*sqroot.*, line 2"),
        ("def f():\n    return nobody\n\nf()\n", "NameError: .*nobody.*, line 2"),
        ("\n\nclass Task(:\n", "SyntaxError: invalid syntax .*, line 3"),
        ("raise SystemExit(0)\n", "SystemExit: 0 .*, line 1"),
    ],
)
def test_an_error_inside_the_module_is_one_line_with_its_own_line(module, code, told):
    name = f"broken_{len(code)}"
    module(name, code)
    with pytest.raises(ConfigError, match=f"task: importing '{name}' raised {told}"):
        task_class(f"{name}:Task")


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
    words = ["colearn"] if command == "-m" else ["from colearn.entry.cli import main; main()"]
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


MINE = """
from dataclasses import dataclass
from colearn.methods.advantage.raw_return import RawReturn

@dataclass(frozen=True, kw_only=True)
class Mine(RawReturn):
    weight: float = 2.0
"""
CONFIG = {"task": {"name": "str_build"}, "models": {"*": {"path": "embedded"}}}


def advantage_of(name, **settings):
    algorithm = {"name": "mareinforce", "advantage": {"name": name, **settings}}
    return build_algorithm(load_config({**CONFIG, "algorithm": algorithm})).parts().advantage


def test_an_advantage_of_a_module_is_named_in_a_config_with_its_settings(module):
    module("mine_a", MINE)
    advantage = advantage_of("mine_a:Mine", weight=3.0)
    assert (type(advantage).__name__, advantage.weight) == ("Mine", 3.0)


def test_an_advantage_of_a_module_knows_its_settings(module):
    module("mine_b", MINE)
    with pytest.raises(ConfigError, match=r"advantage\.wieght: .*did you mean 'weight'"):
        advantage_of("mine_b:Mine", wieght=3.0)


def test_a_report_writes_the_name_by_which_a_config_chooses_a_part(module):
    module("mine_c", MINE)
    assert part_name(advantage_of("mine_c:Mine")) == "mine_c:Mine"
    assert part_name(advantage_of("raw_return")) == "raw_return"


def test_an_advantage_of_an_installed_package_goes_by_its_entry_point(tmp_path, monkeypatch):
    places = tmp_path / "own-1.0.dist-info"
    places.mkdir()
    (places / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (places / "entry_points.txt").write_text("[colearn.advantages]\nmine = mine_d:Mine\n")
    (tmp_path / "mine_d.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    assert type(advantage_of("mine")).__name__ == "Mine"
    assert part_name(advantage_of("mine")) == "mine"
    with pytest.raises(ConfigError, match=r"unknown advantage 'mne'; did you mean 'mine'"):
        advantage_of("mne")


def test_a_class_of_another_kind_is_no_advantage(module):
    module("mine_e", "class Mine: pass\n")
    with pytest.raises(ConfigError, match=r"name: 'mine_e:Mine' is no class of .*Advantage"):
        advantage_of("mine_e:Mine")


@pytest.mark.parametrize("kind", KINDS)
def test_every_shipped_name_of_every_kind_leads_to_a_class_of_the_kind(kind):
    for name in names(kind):
        assert isinstance(load(kind, name), type)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_name_of_any_kind_is_one_error_with_the_neighbours(kind):
    name = next(iter(names(kind)))
    with pytest.raises(ConfigError, match=rf"^here: unknown \w+ '{name}x'; .*'?{name}'?"):
        load(kind, f"{name}x", "here")


def test_a_name_that_is_only_checked_imports_nothing(module, tmp_path):
    left = tmp_path / "left"
    module("leaves", f"open({str(left)!r}, 'w')\n")
    check_name("advantages", "leaves:Mine")
    assert not left.exists()


def test_a_config_that_is_only_read_runs_no_code_of_its_own(module, tmp_path):
    left = tmp_path / "left"
    module("leaves_too", f"open({str(left)!r}, 'w')\n")
    with (
        without_own_code(),
        pytest.raises(ConfigError, match=r"advantage\.name: 'leaves_too:Mine' is code of its own"),
    ):
        advantage_of("leaves_too:Mine")
    assert not left.exists()
    with pytest.raises(ConfigError, match="has no 'Mine'"):
        advantage_of("leaves_too:Mine")


def test_a_tracker_of_a_module_takes_its_settings(module, tmp_path):
    code = """
from colearn.contract import Tracker
class Told(Tracker):
    def __init__(self, folder, config, *, words: tuple[str, ...] = ()):
        self.folder, self.words = folder, words
    def log(self, metrics, step): ...
    def transcripts(self, episodes, step): ...
    def close(self): ...
"""
    module("telling", code)
    run = {"trackers": [{"name": "telling:Told", "words": ["a", "b"]}]}
    (chosen,) = load_config({**CONFIG, "run": run}).run.trackers
    tracker = build_tracker(chosen, tmp_path, {})
    assert (tracker.folder, tracker.words) == (tmp_path, ("a", "b"))
    wrong = chosen.model_copy(update={"name": "telling:Told", "word": 1})
    with pytest.raises(ConfigError, match=r"run\.trackers\.word: unknown setting; .*'words'"):
        build_tracker(wrong, tmp_path, {})


def test_a_wrapper_of_a_module_takes_its_settings(module):
    code = """
from colearn.tasks.wrappers import Discussion
class Long(Discussion):
    def __init__(self, inner, *, turns: int):
        super().__init__(inner)
        self.horizon = turns
"""
    module("talking", code)
    chosen = {"name": "talking:Long", "turns": 7}
    assert build_task(load_config({**CONFIG, "wrapper": chosen})).horizon == 7
    with pytest.raises(ConfigError, match=r"wrapper\.turns: missing"):
        build_task(load_config({**CONFIG, "wrapper": "talking:Long"}))


def test_a_name_alone_stays_a_name_in_the_config_that_is_written():
    config = load_config({**CONFIG, "wrapper": "pipeline", "run": {"trackers": ["wandb"]}})
    plain = config.model_dump(mode="json")
    assert (plain["wrapper"], plain["run"]["trackers"]) == ("pipeline", ["wandb"])
    full = load_config({**CONFIG, "wrapper": {"name": "pipeline", "way": 1}})
    assert full.model_dump(mode="json")["wrapper"] == {"name": "pipeline", "way": 1}


def test_a_generator_has_settings_of_its_own_and_a_name_may_stand_alone():
    run = {"generator": {"name": "vllm", "cache_gib": 8}}
    chosen = load_config({**CONFIG, "run": run}).run.generator
    assert build_part(GeneratorKind, chosen, "run.generator").cache_gib == 8.0
    alone = load_config({**CONFIG, "run": {"generator": "vllm"}}).run.generator
    assert build_part(GeneratorKind, alone, "run.generator").cache_gib is None


def test_a_dotted_key_adds_a_setting_to_a_name_that_stands_alone():
    config = load_config({**CONFIG, "run": {"generator": "vllm"}}, ["run.generator.cache_gib=2"])
    assert config.run.generator.plain() == {"name": "vllm", "cache_gib": 2}


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        ({"name": "vllm", "cache_gb": 8}, r"^run\.generator\.cache_gb: .*'cache_gib'"),
        ({"name": "vllm", "cache_gib": 0}, r"^run\.generator\.cache_gib: must be above 0"),
        (
            {"eager": True},
            r"^run\.generator\.eager: unknown setting; 'transformers' has only batch",
        ),
        ("vlm", r"^run\.generator: unknown generator 'vlm'; did you mean 'vllm'"),
    ],
)
def test_a_mistake_in_a_generators_section_is_one_line(generator, message):
    with pytest.raises(ConfigError, match=message):
        chosen = load_config({**CONFIG, "run": {"generator": generator}}).run.generator
        build_part(GeneratorKind, chosen, "run.generator")


def test_a_report_does_not_import_the_code_of_a_config(module, tmp_path):
    left = tmp_path / "left"
    module("reported", f"open({str(left)!r}, 'w')\n")
    config = {**CONFIG, "algorithm": {"name": "reported:Mine"}}
    assert "reported:Mine" in str(settings_table([config])) and not left.exists()
