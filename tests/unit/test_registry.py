"""Names to classes: shipped, by entry point, or module:Class."""

import pytest

from colearn.errors import ConfigError
from colearn.registry import names, task_class


def test_a_class_without_a_name_is_found_by_its_module(tmp_path, monkeypatch):
    (tmp_path / "lonely_task.py").write_text("class Lonely: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert task_class("lonely_task:Lonely").__name__ == "Lonely"


def test_a_module_that_is_not_there_is_one_line_with_the_remedy():
    with pytest.raises(ConfigError, match="no module 'nowhere' for 'nowhere:Task'; run from"):
        task_class("nowhere:Task")


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"module 'colearn\.seeding' has no 'Task'"):
        task_class("colearn.seeding:Task")


def test_an_error_inside_the_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_task.py").write_text("import not_installed_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        task_class("broken_task:Task")


def test_shipped_names_come_with_where_they_live():
    assert names("tasks")["str_build"] == "colearn.tasks.str_build:StrBuild"
