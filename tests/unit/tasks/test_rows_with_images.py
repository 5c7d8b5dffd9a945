"""Rows with images, audio or video are refused in one line wherever rows are read."""

from __future__ import annotations

import base64
import io
import json
import sys
import types
from pathlib import Path

import pytest

from colearn.errors import ConfigError
from colearn.programs.workflow.declared import DeclaredWorkflow
from colearn.tasks.dataset import Dataset
from colearn.tasks.dataset.data import RowSource, read_rows
from colearn.tasks.environment import Environment
from colearn.tasks.rows import file_rows
from colearn.text.media import media_problem
from colearn.training.learners.sft.dialogues import read_dialogues

Image = pytest.importorskip("PIL.Image", reason="pictures of datasets are PIL's")
MATCHES = "tests.helpers.reward_functions:matches"


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "PNG")
    return buffer.getvalue()


URL = "data:image/png;base64," + base64.b64encode(png()).decode()
IN_JSON = {
    "a path under the name image": {"image": "a.png"},
    "several paths": {"images": ["a.png", "b.png"]},
    "a path under the name Image": {"Image": "a.png"},
    "an address": {"image_url": "https://example.org/a.png"},
    "a column of paths": {"audio_paths": ["a.wav"]},
    "text of base 64": {"image_base64": "iVBORw0KGgo="},
    "a data address": {"figure": URL},
    "a stored file": {"figure": {"bytes": None, "path": "a.png"}},
    "a stored file in a list": {"figures": [{"bytes": "iVBOR", "path": None}]},
    "a part of OpenAI's messages": {
        "prompt": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is it?"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                ],
            }
        ]
    },
    "a part of a template's messages": {
        "prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]}]
    },
    "images of a message": {
        "prompt": [{"role": "user", "content": "what is it?", "images": ["a.png"]}]
    },
    "audio": {"audio": {"array": [0.0], "sampling_rate": 8000}},
    "a video": {"videos": ["a.mp4"]},
}
DECODED = {
    "a decoded picture": {"figure": Image.new("RGB", (1, 1))},
    "decoded pictures": {"figures": [Image.new("L", (2, 2))]},
    "bytes of a picture": {"image_2": png()},
    "a stored picture": {"figure": {"bytes": png(), "path": None}},
}


def rows_with(extra):
    return [{"prompt": "a"}, {"prompt": "b", **extra}]


@pytest.mark.parametrize("extra", [*IN_JSON.values(), *DECODED.values()], ids=[*IN_JSON, *DECODED])
def test_rows_of_a_program_with_media_are_refused(extra):
    assert media_problem(rows_with(extra)[1]) is not None


def test_a_file_whose_rows_have_media_is_refused_by_every_task_that_reads_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows_with({"image": "a.png"}))))
    line = rf"task.path: line 2 of {path} has an image in 'image'"
    with pytest.raises(ConfigError, match=line):
        Dataset(str(path), MATCHES).items("train")
    with pytest.raises(ConfigError, match=line):
        Environment("tests.helpers.trl_environments:Buttons", path=str(path)).items("train")
    with pytest.raises(ConfigError, match=r"task.data: line 2 of .* has an image in"):
        file_rows(path, "packaged")


def test_rows_of_the_hub_with_pictures_are_refused(monkeypatch):
    rows = rows_with(DECODED["a stored picture"])
    hub = types.SimpleNamespace(load_dataset=lambda *_, **__: rows)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    with pytest.raises(ConfigError, match=r"^task.path: row 2 of some/pictures has "):
        read_rows(RowSource(path="some/pictures"))


def test_a_csv_file_with_paths_of_pictures_is_refused(tmp_path):
    (tmp_path / "rows.csv").write_text("prompt,image\na,\nb,b.png\n")
    with pytest.raises(ConfigError, match=r"line 3 of .* has an image in 'image'"):
        read_rows(RowSource(path=str(tmp_path / "rows.csv")))
    (tmp_path / "rows.csv").write_text("prompt,image\na,\nb,\n")
    assert len(read_rows(RowSource(path=str(tmp_path / "rows.csv")))) == 2


@pytest.mark.parametrize("name", ["images", "content", "row"])
def test_dialogues_with_media_are_refused(tmp_path, name):
    asked = {"role": "user", "content": "what is it?"}
    row = {"messages": [asked, {"role": "assistant", "content": "an owl"}]}
    if name == "content":
        asked["content"] = [{"type": "image"}, {"type": "text", "text": "what is it?"}]
    elif name == "row":
        row["image"] = "a.png"
    else:
        asked[name] = ["a.png"]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(ConfigError, match=r"^--data: line 1 of .* has (an image|audio) in"):
        read_dialogues(path, ["a"])


def test_rows_of_a_declared_graph_with_media_are_refused(tmp_path):
    rows = [{"question": "a", "figure": URL, "answers": ["x"]}] * 5
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    graph = (
        "items: rows.jsonl\nnodes: [{name: answer, role: a, prompt: '{question}'}]\n"
        "rewards: [{score: f1, field: answer, gold: answers}]\n"
    )
    Path(tmp_path / "graph.yaml").write_text(graph)
    with pytest.raises(ConfigError, match=r"line 1 of .* has an image in 'figure'"):
        DeclaredWorkflow(str(tmp_path / "graph.yaml"))


@pytest.mark.parametrize(
    "extra",
    [
        {"image": None},
        {"images": []},
        {"video": False, "audio": 0},
        {"image_name": "ubuntu:22.04"},
        {"target": "a.png"},
        {"meta": {"bytes": 3, "path": "a.txt", "image": "x"}},
        {"text": "an image of data:image/png"},
        {"digest": b"\x00\x01"},
        {"x": Image.new("RGB", (1, 1)), "target": png(), "drawn": {"bytes": png(), "path": None}},
        {"preimage": 3, "figure": "a.png"},
        {"shape": {"type": "image of a map", "text": "a hill"}},
    ],
)
def test_rows_of_text_and_of_what_a_reward_reads_are_read(extra):
    assert media_problem(rows_with(extra)[1]) is None
