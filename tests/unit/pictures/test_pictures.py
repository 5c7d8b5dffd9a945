"""Pictures of worlds: what a task tells of them, and what the report draws, counted by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import fabricated_runs as fabricated
import numpy as np
import pytest

from colearn.contract.picture import Cell, Panel, Picture
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.errors import CheckpointError
from colearn.runs.record.transcript import transcript
from colearn.runs.report import write_report
from colearn.runs.report.draw_picture import SIDE, Drawing, changed
from colearn.tasks.house_build.task import HouseBuild
from colearn.tasks.str_build.task import StrBuild

AGENTS = ("left", "right")


def one_panel(cells: dict[tuple[int, int], Cell], **rest: Any) -> Picture:
    return Picture(groups=((Panel("built", 3, 2, cells),),), **rest)


def drawn(picture: Picture, earlier: Picture | None = None) -> str:
    return Drawing([picture], AGENTS).draw(picture, earlier)


def squares(path: str) -> list[tuple[int, int]]:
    """The cells whose squares a path draws."""
    starts = re.findall(r"M(\d+) (\d+)h\d+v", path)
    return [(int(x) // SIDE, int(y) // SIDE) for x, y in starts]


def test_a_picture_comes_back_from_its_json():
    picture = one_panel(
        {(0, 0): Cell("stone", "left"), (2, 1): Cell("oak", "right", "extra"), (1, 1): Cell()},
        colours={"stone": "#112233", "oak": "#445566"},
        caption="one of <3>",
    )
    assert Picture.from_plain(json.loads(json.dumps(picture.plain()))) == picture


def test_a_cell_is_five_entries_of_json():
    plain = one_panel({(2, 1): Cell("stone", "right", "wrong"), (0, 0): Cell()}).plain()
    assert plain["kinds"] == ["stone"] and plain["owners"] == ["right"]
    assert plain["groups"][0][0]["cells"] == [[2, 1, 0, 0, "wrong"], [0, 0, -1, -1, ""]]


@pytest.mark.parametrize(
    ("columns", "cells", "message"),
    [
        (3, {(3, 0): Cell()}, "lies outside"),
        (3, {(0, -1): Cell()}, "lies outside"),
        (0, {}, "give 1 to 1000"),
        (1001, {}, "give 1 to 1000"),
        (3, {(0, 0): Cell(mark="bad")}, "unknown mark 'bad'"),  # type: ignore[arg-type]
    ],
)
def test_a_panel_that_cannot_be_drawn_is_refused(columns, cells, message):
    with pytest.raises(ValueError, match=message):
        Panel("built", columns, 2, cells)


def test_a_colour_that_is_none_is_refused():
    with pytest.raises(ValueError, match="is not #rrggbb"):
        one_panel({}, colours={"stone": "red;background:url(x)"})


def test_str_build_tells_what_stands_where_and_by_whom():
    """T in the small font: the top row, and the middle column below it. a3 is its top left cell."""
    task = StrBuild(prompt="compact", font="small", strings=["T"])
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    actions = {"builder_1": "a3 stone\na1 stone", "builder_2": "b2 obsidian"}
    state = task.step(state, actions, np.random.default_rng(0)).state
    target, built = task.picture(state).panels
    assert target.title == "target" and set(target.cells) == {
        (0, 0),
        (1, 0),
        (2, 0),
        (1, 1),
        (1, 2),
    }
    assert built.cells == {
        (0, 0): Cell("stone", "builder_1"),
        (1, 0): Cell(mark="missing"),
        (2, 0): Cell(mark="missing"),
        (1, 1): Cell("obsidian", "builder_2"),
        (1, 2): Cell(mark="missing"),
        (0, 2): Cell("stone", "builder_1", "extra"),
    }


def test_house_build_tells_each_layer_with_the_back_row_on_top():
    task = HouseBuild(prompt="compact", size="small", spiders=0)
    house = task.items("train")[0]
    width, height, depth = house.size
    state = task.reset(house, np.random.default_rng(0))
    first, block = next((cell, name) for cell, name in house.blocks if cell == (0, 0, 0))
    other = "stone" if block != "stone" else "obsidian"
    actions = {"builder_1": f"a1-1 {other}", "builder_2": ""}
    picture = task.picture(task.step(state, actions, np.random.default_rng(0)).state)
    assert len(picture.groups) == height
    planned, built = picture.groups[first[1]]
    corner = (0, depth - 1)
    assert (planned.columns, planned.rows) == (width, depth)
    assert planned.cells[corner] == Cell(block)
    assert built.cells[corner] == Cell(other, "builder_1", "wrong")
    total = sum(len(panel.cells) for panel in picture.panels[::2])
    missing = [c for panel in picture.panels for c in panel.cells.values() if c.mark == "missing"]
    assert total == len(house.blocks) and len(missing) == total - 1


def test_house_build_marks_blocks_outside_of_the_house():
    task = HouseBuild(prompt="compact", size="small", spiders=0)
    house = next(house for house in task.items("train") if (1, 0, 1) not in dict(house.blocks))
    state = task.reset(house, np.random.default_rng(0))
    actions = {"builder_1": "", "builder_2": "b2-1 stone"}
    picture = task.picture(task.step(state, actions, np.random.default_rng(0)).state)
    at = (1, house.size[2] - 2)
    assert picture.groups[0][1].cells[at] == Cell("stone", "builder_2", "extra")


def test_blocks_are_drawn_in_the_colour_of_their_kind():
    picture = one_panel(
        {(0, 0): Cell("stone"), (2, 1): Cell("stone"), (1, 0): Cell("oak")},
        colours={"stone": "#112233", "oak": "#445566"},
    )
    paths = dict(re.findall(r'<path d="([^"]+)" class="block" fill="(#\w+)"/>', drawn(picture)))
    squares_by_colour = {colour: squares(path) for path, colour in paths.items()}
    assert squares_by_colour == {"#112233": [(0, 0), (2, 1)], "#445566": [(1, 0)]}


def test_kinds_without_a_colour_differ():
    picture = one_panel({(0, 0): Cell("stone"), (1, 0): Cell("oak")})
    assert len(set(re.findall(r'class="block" fill="(#\w+)"', drawn(picture)))) == 2


def test_agents_are_numbered_in_their_order():
    picture = one_panel({(0, 0): Cell("a", "right"), (1, 0): Cell("a", "left"), (2, 0): Cell("a")})
    half = SIDE // 2
    texts = re.findall(r'<text x="([\d ]+)" y="([\d ]+)">(\d+)</text>', drawn(picture))
    assert texts == [(f"{SIDE + half}", f"{half + 4}", "1"), (f"{half}", f"{half + 4}", "2")]


def test_missing_extra_and_wrong_cells_are_framed():
    picture = one_panel(
        {
            (0, 0): Cell("a", "left"),
            (1, 0): Cell("a", mark="missing"),
            (2, 0): Cell("a", "left", "extra"),
            (0, 1): Cell("a", "left", "wrong"),
        }
    )
    path_by_mark = dict(
        re.findall(r'<path class="(missing|extra|wrong)" d="([^"]+)"', drawn(picture))
    )
    assert {mark: squares(path) for mark, path in path_by_mark.items()} == {
        "missing": [(1, 0)],
        "extra": [(2, 0)],
        "wrong": [(0, 1)],
    }


def test_a_panel_is_told_in_words():
    picture = one_panel(
        {(0, 0): Cell("a"), (1, 0): Cell("a", "", "extra"), (2, 0): Cell(mark="missing")}
    )
    assert 'aria-label="built: 2 cells filled, 1 missing, 1 extra"' in drawn(picture)


def test_what_changed_since_the_turn_before_is_marked():
    """(0, 0) has another owner, (1, 0) is gone, (2, 0) is new, (0, 1) is as it was, (1, 1) is
    missing in both."""
    before = {
        (0, 0): Cell("a", "left"),
        (1, 0): Cell("a", "left"),
        (0, 1): Cell("a", "left"),
        (1, 1): Cell("a", mark="missing"),
    }
    after = {
        (0, 0): Cell("a", "right"),
        (1, 0): Cell("a", mark="missing"),
        (2, 0): Cell("a", "left"),
        (0, 1): Cell("a", "left"),
        (1, 1): Cell("a", mark="missing"),
    }
    now, earlier = one_panel(after), one_panel(before)
    assert changed(now.panels[0], earlier.panels[0]) == [(0, 0), (1, 0), (2, 0)]
    assert 'class="new"' in drawn(now, earlier)
    assert 'class="new"' not in drawn(now)
    assert 'class="new"' not in drawn(now, now)


def test_a_panel_of_another_size_is_not_compared():
    now = one_panel({(0, 0): Cell("a")})
    earlier = Picture(groups=((Panel("built", 2, 2, {}),),))
    assert 'class="new"' not in drawn(now, earlier)


def test_all_text_of_a_picture_is_escaped():
    hostile = '"><b onload=x>'
    picture = Picture(
        groups=((Panel(hostile, 1, 1, {(0, 0): Cell(hostile, hostile)}),),), caption=hostile
    )
    drawing = Drawing([picture], [hostile])
    page = drawing.draw(picture, None) + drawing.legend(changes=False)
    assert "<b" not in page
    assert page.count("&quot;&gt;&lt;b onload=x&gt;") == 5


def test_a_legend_names_what_is_drawn_and_nothing_else():
    picture = one_panel({(0, 0): Cell("stone", "left", "extra")})
    legend = Drawing([picture], AGENTS).legend(changes=False)
    assert re.findall(r"</svg>([^<]*)", legend) == ["stone", "left", "extra: belongs empty"]


def test_a_picture_draws_each_colour_once():
    """A full panel of 400 blocks of one agent takes less than 50 characters a block."""
    cells = {(x, y): Cell("stone", "left") for x in range(20) for y in range(20)}
    picture = Picture(groups=((Panel("built", 20, 20, cells),),))
    page = drawn(picture)
    assert page.count("<path") == 3 and page.count("<text") == 1
    assert len(page) < 400 * 50


def tree(task: StrBuild, actions: list[dict[str, str]]) -> Tree[Any]:
    """One episode in which these actions are said."""
    rng = np.random.default_rng(0)
    item = task.items("train")[0]
    state = task.reset(item, rng)
    seen = {agent: Observation("", ()) for agent in task.agents}
    nodes = [Node(index=0, parent=None, path=(), state=state, observations=seen)]
    for number, said in enumerate(actions, start=1):
        outcome = task.step(state, said, rng)
        state = outcome.state
        nodes.append(
            Node(
                index=number,
                parent=number - 1,
                path=(0,) * number,
                state=state,
                observations={} if number == len(actions) else seen,
                actions={agent: Action(text) for agent, text in said.items()},
                reward=outcome.reward,
            )
        )
    return Tree(item=item, episode=0, agents=task.agents, nodes=tuple(nodes))


def test_a_transcript_holds_the_picture_after_each_turn():
    task = StrBuild(prompt="compact", font="small", strings=["T"], horizon=2)
    said = [{"builder_1": "a3 stone", "builder_2": ""}, {"builder_1": "", "builder_2": ""}]
    record = transcript(task, tree(task, said))
    first, second = (Picture.from_plain(turn["picture"]).panels[1] for turn in record["turns"])
    assert first.cells[0, 0] == Cell("stone", "builder_1")
    assert second.cells[0, 0] == Cell(mark="missing")
    assert "rendered" not in record["turns"][0], "the picture is enough until the end"
    assert record["turns"][1]["rendered"].startswith("###")


def test_a_transcript_of_a_task_without_pictures_has_the_text_of_each_turn(monkeypatch):
    task = StrBuild(prompt="compact", font="small", strings=["T"], horizon=2)
    monkeypatch.delattr(StrBuild, "picture")
    built = {"builder_1": "a3 stone", "builder_2": ""}
    record = transcript(task, tree(task, [built, {"builder_1": "", "builder_2": ""}]))
    assert not any("picture" in turn for turn in record["turns"])
    first, second = (turn["rendered"] for turn in record["turns"])
    assert first != second and first.startswith("###") and second.startswith("###")


def give_pictures(path: Path, plain: Any) -> None:
    """Every turn of a run's transcripts ends with this picture."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for turn in line["turns"]:
            turn["picture"] = plain
    fabricated.write_jsonl(path, lines)


def test_the_report_draws_pictures_and_shows_the_text_of_runs_without_them(tmp_path):
    fabricated.write_run(tmp_path / "runs" / "magrpo-s0", "magrpo", 0)
    fabricated.write_run(tmp_path / "runs" / "collm_cc-s0", "collm_cc", 0)
    picture = one_panel({(0, 0): Cell("<stone>", "right")}, caption="all <well>")
    give_pictures(tmp_path / "runs" / "magrpo-s0" / "episodes.jsonl", picture.plain())
    page = write_report(tmp_path).read_text()
    assert page.count('<figure class="world">') == 4
    assert "&lt;stone&gt;" in page and "all &lt;well&gt;" in page and "<stone>" not in page
    folded = "<details><summary>the state as text</summary><pre>#..#"
    assert page.count(folded) == 4
    assert page.count('<pre class="picture">#..#\n&lt;##&gt;') == 4
    assert "url(" not in page and "http:" not in page and "<script" not in page


@pytest.mark.parametrize(
    "plain",
    [
        [],
        {"kinds": [], "owners": [], "colours": {}, "caption": "", "groups": [[{"size": [1]}]]},
        {"kinds": [], "owners": [], "colours": {"a": "red"}, "caption": "", "groups": []},
    ],
)
def test_a_picture_that_cannot_be_read_names_its_file(tmp_path, plain):
    fabricated.write_run(tmp_path / "runs" / "magrpo-s0", "magrpo", 0)
    give_pictures(tmp_path / "runs" / "magrpo-s0" / "episodes.jsonl", plain)
    with pytest.raises(CheckpointError, match=r"episodes\.jsonl:.*picture"):
        write_report(tmp_path)
