"""Making an embedded model: batches by length, time left, one thread, interruption."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny import tiny_model

from colearn.config import load_config
from colearn.config.build import build_task
from colearn.models import embedded, warm_start
from colearn.models.embedded import embedded_model
from colearn.models.embedded_recipes import RECIPES
from colearn.text.notes import TimeLeft


def rows(*lengths: int) -> list[Any]:
    return [(list(range(1, n + 1)), [-100, -100, *range(3, n + 1)]) for n in lengths]


def test_a_long_row_is_apart_from_many_short_ones():
    short, long = rows(*[10] * 31), rows(1000)
    groups = warm_start.by_length([*short[:5], *long, *short[5:]])
    assert [len(group) for group in groups] == [31, 1]
    assert groups[1] == long


def test_rows_of_about_one_length_stay_in_their_order():
    given = rows(10, 12, 11, 10)
    assert warm_start.by_length(given) == [given]


def test_the_groups_cost_the_least_by_hand():
    # 40 * 4 + 256 = 416 for one group; 40 + 3 * 4 + 512 = 564 for two
    assert len(warm_start.by_length(rows(40, 4, 4, 4))) == 1
    # 400 * 4 + 256 = 1856; 400 + 3 * 4 + 512 = 924
    assert len(warm_start.by_length(rows(400, 4, 4, 4))) == 2


def test_gradients_by_length_are_those_of_one_padded_batch():
    model, given = tiny_model("llama"), rows(9, 60, 7, 55, 8)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    inputs = torch.zeros((5, 60), dtype=torch.long)
    labels = torch.full((5, 60), -100)
    for number, (ids, answers) in enumerate(given):
        inputs[number, : len(ids)] = torch.tensor(ids)
        labels[number, : len(ids)] = torch.tensor(answers)
    model(input_ids=inputs, labels=labels).loss.backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    count = sum(len(ids) - 2 for ids, _ in given)
    for group in ([given[1], given[3]], [given[0], given[2], given[4]]):
        warm_start._loss(model, group, count).backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)


def test_the_time_left_follows_the_time_taken(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("colearn.text.notes.time.monotonic", lambda: now[0])
    left = TimeLeft("makes the model")
    for seconds, done in ((1.0, 0.1), (6.0, 0.2), (7.0, 0.3), (12.0, 0.5), (30.0, 1.0)):
        now[0] = 100.0 + seconds
        left.report(done)
    assert capsys.readouterr().err == (
        "note: makes the model: 20%, about 40 s left\nnote: makes the model: 50%, about 14 s left\n"
    )


@pytest.fixture
def task(tmp_path, monkeypatch) -> Any:
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    short = replace(RECIPES["embedded-tiny"], steps=3, episodes=4)
    monkeypatch.setitem(RECIPES, "embedded-tiny", short)
    return build_task(load_config("tiny/str_build"))


def test_an_interrupted_warm_start_leaves_nothing_and_can_be_made_again(
    task, tmp_path, monkeypatch, capsys
):
    def interrupt(self: TimeLeft, done: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TimeLeft, "report", interrupt)
        embedded_model(task, "embedded-tiny", "models.a.path")
    assert [path for path in tmp_path.glob("embedded*") if path.is_dir()] == []
    folder = embedded_model(task, "embedded-tiny", "models.a.path")
    assert (folder / "model.safetensors").is_file()


def test_an_embedded_model_is_made_by_one_thread(task, monkeypatch):
    seen, make = [], embedded._make

    def made(*given: Any) -> None:
        seen.append(torch.get_num_threads())
        make(*given)

    before = torch.get_num_threads()
    monkeypatch.setattr(embedded, "_make", made)
    torch.set_num_threads(2)
    try:
        embedded_model(task, "embedded-tiny", "models.a.path")
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)
