"""Which rows a data set's task reads, from files and the hub, and which of them it holds out."""

from __future__ import annotations

import json
import sys
import types

import pytest

from colearn.errors import ConfigError, MissingExtra
from colearn.tasks.dataset import Dataset

MATCHES = "tests.helpers.reward_functions:matches"
MESSAGE = {"role": "user", "content": "paint"}


def written(path, count):
    path.write_text("\n".join(json.dumps({"prompt": f"paint {k}"}) for k in range(count)))
    return str(path)


def texts(task, split):
    return [item.prompt.text for item in task.items(split)]


def columns(path, text, encoding="utf-8"):
    """The columns of a CSV file's two rows."""
    path.write_bytes(text.encode(encoding))
    task = Dataset(str(path), MATCHES)
    return [dict(item.columns) for split in ("train", "test") for item in task.items(split)]


@pytest.fixture
def hub(monkeypatch):
    """A hub whose rows say how they were asked for."""

    def load_dataset(path, name=None, split=None):
        return [{"prompt": f"{path} {name} {split}"}] * 2

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))


def test_a_name_of_the_hub_is_asked_for_its_training_split(hub):
    assert texts(Dataset("us/walls", MATCHES), "train") == ["us/walls None train"]


def test_the_hub_without_the_extra_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'colearn-llm\[tasks\]'"):
        Dataset("us/walls", MATCHES).items("train")


def test_a_subset_and_a_split_are_asked_for(hub):
    task = Dataset("us/walls", MATCHES, subset="main", split="all")
    assert texts(task, "train") == ["us/walls main all"]


def test_another_split_of_the_same_subset_is_held_out(hub):
    task = Dataset("us/walls", MATCHES, subset="main", test_split="test")
    assert texts(task, "train") == ["us/walls main train"] * 2
    assert texts(task, "test") == ["us/walls main test"] * 2


def test_another_data_set_of_the_hub_is_held_out_in_the_same_subset_and_split(hub):
    task = Dataset("us/walls", MATCHES, subset="main", split="all", test_path="us/doors")
    assert texts(task, "test") == ["us/doors main all"] * 2


def test_a_split_of_the_hub_is_held_out_from_a_file(hub, tmp_path):
    held = {"test_path": "us/walls", "subset": "main", "test_split": "test"}
    task = Dataset(written(tmp_path / "a.jsonl", 2), MATCHES, **held)
    assert texts(task, "train") == ["paint 0", "paint 1"]
    assert texts(task, "test") == ["us/walls main test"] * 2


def test_rows_that_are_trained_on_are_not_held_out(tmp_path):
    path = written(tmp_path / "a.jsonl", 3)
    with pytest.raises(ConfigError, match=r"^task\.test_path: equals task\.path; name another"):
        Dataset(path, MATCHES, test_path=path)


def test_a_split_that_is_trained_on_is_not_held_out():
    with pytest.raises(ConfigError, match=r"^task\.test_split: equals task\.split; name another"):
        Dataset("us/walls", MATCHES, split="all", test_split="all")


@pytest.mark.parametrize("setting", ["subset", "split", "test_split"])
def test_a_file_has_no_subset_and_no_splits(tmp_path, setting):
    path = written(tmp_path / "a.jsonl", 3)
    with pytest.raises(ConfigError, match=rf"^task\.{setting}: .* is a file, which has none; "):
        Dataset(path, MATCHES, **{setting: "other"})


def test_a_file_of_the_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path / "a.jsonl", 2)
    assert texts(Dataset("~/a.jsonl", MATCHES), "train") == ["paint 0"]


@pytest.mark.parametrize(("rows", "held"), [(2, 1), (14, 1), (16, 2)])
def test_a_tenth_is_rounded_and_is_one_row_at_least(tmp_path, rows, held):
    task = Dataset(written(tmp_path / "a.jsonl", rows), MATCHES)
    held_out = texts(task, "test")
    assert len(held_out) == held
    every = [f"paint {k}" for k in range(rows)]
    assert texts(task, "train") == [text for text in every if text not in held_out]


@pytest.mark.parametrize("rows", [1, 2])
def test_something_must_be_left_to_train_on(tmp_path, rows):
    task = Dataset(written(tmp_path / "a.jsonl", rows), MATCHES, test_share=0.9)
    line = rf"^task\.test_share: holds out all rows of .*a\.jsonl \({rows}\); add rows"
    with pytest.raises(ConfigError, match=line):
        task.items("train")


def test_a_mark_of_byte_order_is_no_part_of_a_column(tmp_path):
    assert columns(tmp_path / "a.csv", "prompt,n\nx,1\ny,2\n", "utf-8-sig") == [{"n": 1}, {"n": 2}]


def test_a_csv_file_in_another_encoding_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"^task\.path: .*a\.csv is not UTF-8 .*; save it as UTF"):
        columns(tmp_path / "a.csv", "prompt\né\nx\n", "latin-1")


def test_a_column_with_one_word_is_text_and_its_empty_fields_are_none(tmp_path):
    rows = columns(tmp_path / "a.csv", "prompt,n,word\nx,1,a\ny,b,\n")
    assert rows == [{"n": "1", "word": "a"}, {"n": "b", "word": None}]


def test_a_column_with_a_whole_number_that_a_float_would_round_is_text(tmp_path):
    rows = columns(tmp_path / "a.csv", "prompt,id\nx,9007199254740993\ny,0.5\n")
    assert rows == [{"id": "9007199254740993"}, {"id": "0.5"}]
    rows = columns(tmp_path / "a.csv", "prompt,id\nx,9007199254740993\ny,5\n")
    assert rows == [{"id": 9007199254740993}, {"id": 5}]


def test_a_row_of_a_csv_file_is_named_by_its_line(tmp_path):
    with pytest.raises(ConfigError, match=r"'prompt' of line 4 of .*a\.csv is neither text"):
        columns(tmp_path / "a.csv", 'prompt,note\nx,"two\nlines"\n,\n')


def test_a_row_of_a_parquet_file_is_named_by_its_number(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"prompt": "x"}, {"prompt": ""}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"'prompt' of row 2 of .*a\.parquet is neither"):
        Dataset(str(tmp_path / "a.parquet"), MATCHES).items("train")


@pytest.mark.parametrize(
    ("prompt", "wrong"),
    [
        ([], "'prompt' of line 2 of .* is neither text nor messages; fix it"),
        ([MESSAGE, MESSAGE], "the messages of line 2 of .* are by user, user; write"),
        ([{"role": "system", "content": "a"}], "the messages of line 2 of .* are by system; write"),
        ([{"role": "user", "content": 3}], "a message in 'prompt' of line 2 of .* has no role"),
        ([{"role": "bot", "content": "a"}], "a message in 'prompt' of line 2 of .* has no role"),
        (["paint"], "a message in 'prompt' of line 2 of .* has no role"),
        (
            [MESSAGE, {"role": "assistant", "content": "", "tool_calls": [{}]}, MESSAGE],
            "a message in 'prompt' of line 2 of .* has tool_calls, which prompts do not hold",
        ),
        (
            [{"role": "user", "name": "ben", "content": "a"}],
            "a message in 'prompt' of line 2 of .* has name, which prompts do not hold",
        ),
    ],
)
def test_messages_that_are_no_prompt_are_one_line(tmp_path, prompt, wrong):
    rows = [{"prompt": "paint"}, {"prompt": prompt}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ConfigError, match=wrong):
        Dataset(str(tmp_path / "a.jsonl"), MATCHES).items("train")


@pytest.mark.parametrize("name", ["prompts", "log_metric"])
def test_a_column_named_as_what_every_function_gets_is_one_line(tmp_path, name):
    rows = [{"prompt": "a"}, {"prompt": "b", name: "c"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ConfigError, match=rf"^task\.path: line 2 of .* has a column '{name}'"):
        Dataset(str(tmp_path / "a.jsonl"), MATCHES).items("train")
