"""The report: self-contained, escaped, and no number that summary.json does not hold."""

from __future__ import annotations

import base64
import csv
import json
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import fabricated_runs as fabricated
import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from undrawn import undrawn

from colearn.config import load_config
from colearn.errors import CheckpointError
from colearn.runs.over_seeds import MeanEstimate
from colearn.runs.report import write_report
from colearn.runs.report.plots import Plots
from colearn.runs.report.settings import settings_table
from colearn.runs.report.show import show_estimate, show_number
from colearn.runs.report.source import read_source
from colearn.runs.report.summarise import summarise
from colearn.runs.report.write import live_page
from colearn.text.printable import escape

_VOID = {"meta", "img", "br", "source"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = fabricated.write_comparison(tmp_path_factory.mktemp("comparison"), seeds=range(4))
    fabricated.write_run(out / "runs" / "magrpo-s9", "magrpo", 9, status="running")
    write_report(out)
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (folder / "summary.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=refuse)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for below in value.values():
            yield from numbers(below)
    elif isinstance(value, list):
        for below in value:
            yield from numbers(below)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


class Outline(HTMLParser):
    """Checks that tags nest, and collects attributes and the text of table cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open and "code" not in self.open:  # settings stand there as text
            self.cells.append(data)


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    assert parser.open == []
    return parser


def test_page_refers_to_nothing_outside(page, outline):
    assert "http://" not in page
    assert "https://" not in page
    assert not {"script", "link", "iframe"} & {tag for tag, _, _ in outline.attributes}
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    sources = [v for _, name, v in outline.attributes if name in ("src", "srcset")]
    assert len(sources) == 2 * (3 + 2 + 1)  # returns, two metrics of the task, one diagnostic
    assert all(value.startswith("data:image/") for value in sources)


def test_every_figure_is_an_svg_and_a_pdf_beside_the_page(folder, page, outline):
    """Three of the return, two metrics of the task and one diagnostic, and all curves in one."""
    names = {path.name for path in (folder / "figures").iterdir()}
    stems = {"iou", "adjacency", "gradient_norm_of_the_actors"}
    stems |= {f"return_by_{axis}" for axis in ("environment_steps", "generated_tokens")}
    stems |= {"return_by_wall_seconds"}
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "pdf")}
    links = [value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")]
    assert {f"figures/{name}" for name in names} <= set(links)
    for path in [folder / "curves.svg", *(folder / "figures").glob("*.svg")]:
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        pdf = path.with_suffix(".pdf").read_bytes()
        assert pdf.startswith(b"%PDF-") and b"/CIDFontType2" in pdf and b"CreationDate" not in pdf
    assert base64.b64encode((folder / "figures" / "iou.svg").read_bytes()).decode() in page


@pytest.mark.usefixtures("no_figures")
def test_a_page_that_is_rewritten_during_a_run_links_to_no_files(tmp_path: Path) -> None:
    fabricated.write_run(tmp_path / "run", "magrpo", 0)
    page = live_page(tmp_path / "run", 10)
    assert "figures/" not in page and "curves.csv" not in page and "data:image/svg" in page


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (("a/b", "a b", "A_B"), ["a_b", "a_b_2", "a_b_3"]),
        (("../up", "", ".."), ["figure", "figure_2", "up"]),
        (("x" * 300, "x" * 300), ["x" * 80, "x" * 80 + "_2"]),
    ],
)
def test_figures_of_any_name_have_files_of_their_own(tmp_path, names, files):
    plots = Plots(written=True)
    for name in names:
        plots.add(name, "", Figure())
    plots.write(tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("figures/*.svg")) == sorted(files)
    assert sorted(path.stem for path in tmp_path.rglob("*.pdf")) == sorted(files)


def test_the_numbers_of_the_curves_are_a_table(folder, summary):
    rows = list(csv.DictReader((folder / "curves.csv").open()))
    assert {row["curve"] for row in rows} == {
        "evaluation/return",
        "evaluation/iou",
        "evaluation/adjacency",
        "update/grad_norm",
    }
    drawn = summary["algorithms"]["magrpo"]["curves"]["wall_seconds"]
    of_one = [
        row
        for row in rows
        if (row["algorithm"], row["curve"], row["axis"])
        == ("magrpo", "evaluation/return", "wall_seconds")
    ]
    band = [row for row in of_one if not row["seed"]]
    assert len(band) == len(drawn["x"]) > 1
    for column, numbers in (("x", "x"), ("value", "mean"), ("low", "low"), ("high", "high")):
        assert [float(row[column]) for row in band] == pytest.approx(drawn[numbers], rel=1e-9)
    third = [row for row in of_one if row["seed"] == "2"]
    assert [float(row["value"]) for row in third] == pytest.approx(drawn["seeds"]["2"][1], rel=1e-9)
    assert {row["low"] for row in third} == {""}


def test_links_lead_to_files_beside_the_page(folder, outline):
    links = [value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")]
    assert "runs/magrpo-s3/config.yaml" in links and "tables/performance.csv" in links
    assert [link for link in links if not (folder / unquote(link)).exists()] == []


def test_settings_that_differ_come_first_and_every_one_is_there(page, summary):
    settings = {s["key"]: s["values"] for s in summary["compared"]["settings"]}
    assert next(iter(settings)) == "algorithm.name"
    assert settings["algorithm.name"] == ["collm_cc", "collm_dc", "magrpo"]
    assert settings["train.environment_steps"] == ["400"] * 3
    assert settings["task.words"] == ["[ICML, A|B]"] * 3
    alone = [key for key, values in settings.items() if values[:2] == ["-", "-"] != values[1:]]
    assert any(key.startswith("algorithm.") for key in alone)  # a default of magrpo's
    assert "run.seed" not in settings and not any(key.startswith("compare") for key in settings)
    for key, values in settings.items():
        assert f'<th scope="row">{escape(key)}</th>' in page
        assert f"<code>{escape(values[0])}</code>" in page
    assert page.index(">algorithm.name<") < page.index("<summary>The other")
    assert page.index("<summary>The other") < page.index(">train.environment_steps<")


def test_no_value_is_shown_as_python_writes_it(page):
    for odd in ("None", "True", "False", "[&#x27;", "{&#x27;", "&lt;class"):
        assert f">{odd}" not in page and f" {odd}<" not in page


def test_tables_are_written_for_spreadsheets_and_papers(folder):
    rows = list(csv.reader((folder / "tables" / "performance.csv").open()))
    head = ["", "Return before", "Return before, low", "Return before, high", "Return after"]
    assert rows[0][:5] == head and [row[0] for row in rows[1:]] == sorted(fabricated.GAINS)
    assert {len(row) for row in rows} == {len(rows[0])}
    first = [fabricated.curve("collm_cc", seed)[0] for seed in range(4)]
    mean, reach = np.mean(first), 3.182446 * np.std(first, ddof=1) / 2  # Student's t, 3 degrees
    assert [float(text) for text in rows[1][1:4]] == pytest.approx(
        [mean, mean - reach, mean + reach], rel=1e-6
    )
    text = (folder / "tables" / "performance.tex").read_text()
    assert r"collm\_cc & " in text and r"\textbf{" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {4}


def test_diagnostics_are_means_over_models_and_a_critic_s_are_its_own(tmp_path):
    folder = tmp_path / "run"
    fabricated.write_run(folder, "magrpo", 0)
    lines = [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]
    lines[1]["metrics"] = {"a/grad_norm": 1.0, "b/grad_norm": 2.0, "critic/team/grad_norm": 8.0}
    fabricated.write_jsonl(folder / "metrics.jsonl", lines)
    diagnostics = summarise(read_source(folder)).algorithms["magrpo"].diagnostics
    assert diagnostics["grad_norm"].mean == [1.5]
    assert diagnostics["critic/grad_norm"].mean == [8.0]


@pytest.mark.usefixtures("no_figures")
def test_where_the_time_went_stands_below_the_transcripts_and_as_numbers_in_csv(tmp_path):
    """One update of 4 s, of which 1 s idle."""
    run = tmp_path / "run"
    fabricated.write_run(run, "magrpo", 0)
    lines = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = {"rollout": 3.0, "update": 1.0, "idle": 1.0, "overlap": 0.0}
    lines[1]["metrics"] = {f"seconds/{name}": value for name, value in seconds.items()}
    fabricated.write_jsonl(run / "metrics.jsonl", lines)
    page = write_report(run).read_text()
    places = [page.index(f"<h2>{name}") for name in ("Transcripts", "Where the time", "Settings")]
    assert places == sorted(places)
    rows = list(csv.reader((run / "tables" / "time_use.csv").open()))
    assert rows == [["", "magrpo"], ["idle", "0.25"], ["overlap", "0"]]


def test_page_suits_phones_and_the_dark(page):
    assert '<meta name="viewport" content="width=device-width' in page
    assert "prefers-color-scheme: dark" in page


def test_transcripts_are_escaped(page):
    assert "place &lt;b&gt;stone&lt;/b&gt; &amp; &#39;wood&#39; at (1, 2)" in page
    assert "<b>stone" not in page
    assert "&lt;##&gt;" in page
    assert "\x07" not in page


def test_text_that_no_page_can_carry_is_replaced():
    assert escape("a\x00b\ud800<\n\t") == "a\ufffdb\ufffd&lt;\n\t"


@pytest.mark.parametrize("source", ["report.html", "table.md"])
def test_every_number_in_the_tables_is_in_the_summary(folder, outline, summary, source):
    known = {show_number(value) for value in numbers(summary)}
    known |= {
        f"{round(value, digits) + 0.0:,.{digits}f}"
        for value in numbers(summary)
        for digits in range(5)
    }
    if source == "report.html":
        text = " ".join(outline.cells).replace("\u00a0", " ")
    else:
        lines = (folder / source).read_text().splitlines()
        rows = [line for line in lines if line.startswith("| ")]
        text = " ".join(re.sub(r"^\| [^|]*\|", "", row) for row in rows)
        text = re.sub(r"\b(over )?(collm_cc|collm_dc|magrpo)\b", "", text)
    shown = re.findall(r"-?\d[\d,]*(?:\.\d+)?", text.replace(", ", " "))
    assert len(shown) > 100
    assert [number for number in shown if number not in known] == []


def test_summary_holds_the_runs_and_their_estimates(summary):
    finals = [r["final"] for r in summary["runs"] if r["algorithm"] == "magrpo"]
    change = summary["algorithms"]["magrpo"]["metrics"]["return"]
    assert len(finals) == 4
    assert change["last"]["mean"] == pytest.approx(sum(finals) / 4)
    assert change["last"]["low"] < change["last"]["mean"] < change["last"]["high"]
    run = summary["runs"][0]
    assert run["evaluations"]["metrics.return"][-1] == run["final"]
    assert len(run["evaluations"]["environment_steps"]) == 13
    assert run["evaluations"]["environment_steps"][-1] == 400
    assert summary["optimum"] == 1.0
    assert summary["algorithms"]["magrpo"]["overhead"]["samples_per_episode"]["mean"] == 20.0
    assert summary["algorithms"]["magrpo"]["overhead"]["peak_memory_gb"]["mean"] == 0.8135


def test_summary_says_what_was_compared(summary):
    compared = summary["compared"]
    assert compared["task"] == "str_build"
    assert compared["task_settings"] == {"horizon": 2, "words": ["ICML", "A|B"]}
    assert compared["seeds"] == [0, 1, 2, 3]
    assert compared["models"] == {"left": "embedded", "right": "embedded"}
    assert compared["environment_steps"] == 400
    assert compared["algorithms"]["collm_cc"] == {"name": "collm_cc", "discount": 0.9}


def test_a_budget_is_that_of_every_run_or_of_none(tmp_path: Path) -> None:
    out = fabricated.write_comparison(
        tmp_path / "all", seeds=[0], algorithms=("collm_cc", "magrpo")
    )
    assert read_source(out).compared.environment_steps == 400
    config = out / "runs" / "magrpo-s0" / "config.yaml"
    config.write_text(
        config.read_text().replace("environment_steps: 400", "environment_steps: 300")
    )
    assert read_source(out).compared.environment_steps is None


def test_pairs_are_complementary(summary):
    pairs = {(pair["x"], pair["y"]): pair["probability"]["mean"] for pair in summary["pairs"]}
    assert len(pairs) == 6
    for (x, y), probability in pairs.items():
        assert probability + pairs[y, x] == pytest.approx(1.0)


def test_curves_in_the_summary_are_what_is_drawn(summary):
    for algorithm in summary["algorithms"].values():
        for axis in ("environment_steps", "generated_tokens", "wall_seconds"):
            curve = algorithm["curves"][axis]
            assert len(curve["x"]) == len(curve["mean"]) == len(curve["low"])
            assert all(
                low <= mean <= high
                for low, mean, high in zip(curve["low"], curve["mean"], curve["high"], strict=True)
            )
            assert set(curve["seeds"]) == {"0", "1", "2", "3"}


def test_headline_and_what_is_missing_stand_at_the_top(page, summary):
    assert escape(summary["headline"]) in page
    unfinished = {"run": "magrpo-s9", "status": "unfinished", "environment_steps": 400}
    assert summary["missing"] == [unfinished]
    assert page.index("magrpo-s9") < page.index("Learning curves")
    assert page.index("Learning curves") < page.index("What was compared")
    assert page.index("Performance, response time") < page.index("<h2>Settings")


@pytest.mark.usefixtures("no_figures")
def test_a_metric_that_is_always_0_is_named_and_has_no_rows(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "magrpo-s0"
    fabricated.write_run(run, "magrpo", 0)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        line["metrics"] |= {"reopened_edited": 0.0, "once": float(number == 4), "unknown": None}
    fabricated.write_jsonl(run / "metrics.jsonl", lines)
    alone = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Zero in every evaluation: reopened_edited." in alone
    assert "reopened_edited before" not in alone and "once before" in alone
    assert "unknown before" in alone, "a metric without a value is not 0"


@pytest.mark.usefixtures("no_figures")
def test_a_run_that_goes_on_has_a_page_of_its_curves_so_far(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fabricated.write_run(run, "magrpo", 0, status="running")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text(lines[0])
    alone = live_page(run, 10)
    assert '<meta http-equiv="refresh" content="10">' in alone
    assert "Learning curves" in alone and "Transcripts" in alone
    assert 'http-equiv="refresh' not in live_page(run, None)
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(CheckpointError):
        live_page(run, 10)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of one run of one algorithm."""
    folder = tmp_path_factory.mktemp("alone")
    fabricated.write_run(folder / "runs" / "magrpo-s0", "magrpo", 0)
    with undrawn():
        return write_report(folder).read_text(encoding="utf-8")


def test_one_algorithm_alone_is_not_called_a_comparison(alone: str, page: str) -> None:
    assert "colearn run" in alone and "What was run" in alone and "<summary>All " in alone
    assert "ompar" not in alone.partition("Learning curves")[0].partition("<body>")[2]
    assert "colearn comparison" in page and "What was compared" in page


def test_a_single_run_is_not_called_a_mean_over_seeds(alone: str, page: str) -> None:
    assert "over seeds" not in alone and "Values of one run" in alone
    assert "over seeds" in page and "Values of one run" not in page


@pytest.mark.usefixtures("no_figures")
def test_one_run_of_each_algorithm_gives_no_probabilities(tmp_path: Path, page: str) -> None:
    fabricated.write_comparison(tmp_path, range(1), ("collm_cc", "magrpo"))
    alone = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Probability of improvement" not in alone
    assert "Probability of improvement" in page


def test_before_and_after_show_the_same_item(page):
    before, after = re.findall(r"iteration (\d+), item (\w+)", page)[:2]
    assert before == ("0", "icml")
    assert after == ("60", "icml")


def test_report_repeats_to_the_byte(folder, page):
    write_report(folder)
    assert (folder / "report.html").read_text(encoding="utf-8") == page


def test_curves_png_is_a_picture_with_every_colour(folder):
    pixels = matplotlib.image.imread(folder / "curves.png")
    assert pixels.shape[0] > 500 and pixels.shape[1] > 1500
    for red, green, blue in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73)):
        wanted = [red / 255, green / 255, blue / 255]
        assert (abs(pixels[..., :3] - wanted).max(axis=-1) < 0.01).sum() > 100


def test_markdown_cells_do_not_break_their_row(folder):
    lines = (folder / "table.md").read_text().splitlines()
    widths = [line.count("|") for line in lines if line.startswith("|")]
    assert widths[:5] == [widths[0]] * 5


@pytest.mark.usefixtures("no_figures")
def test_runs_evaluated_once_are_reported(tmp_path):
    for seed in range(2):
        folder = tmp_path / "runs" / f"magrpo-s{seed}"
        fabricated.write_run(folder, "magrpo", seed)
        first = (folder / "metrics.jsonl").read_text().splitlines()[0]
        (folder / "metrics.jsonl").write_text(first + "\n")
        episode = (folder / "episodes.jsonl").read_text().splitlines()[0]
        (folder / "episodes.jsonl").write_text(episode + "\n")
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "Before training" in page
    assert "After training" not in page


@pytest.mark.usefixtures("no_figures")
def test_runs_without_transcripts_or_finite_returns_are_reported(tmp_path):
    folder = tmp_path / "runs" / "magrpo-s0"
    fabricated.write_run(folder, "magrpo", 0)
    (folder / "episodes.jsonl").unlink()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line["metrics"]["return"] = math.nan
    fabricated.write_jsonl(folder / "metrics.jsonl", lines)
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "no finite return" in page
    assert "Transcripts" not in page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.68349, "0.683"),
        (-0.1, "-0.1"),
        (12.345, "12.3"),
        (999.6, "1,000"),
        (50400, "50,400"),
        (0.0, "0"),
        (-1e-9, "0"),
        (0.00012, "0.00012"),
        (0.00006, "0.0001"),
        (9.996, "10"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert show_number(value) == text


def test_estimates_show_their_interval_where_they_have_one():
    assert show_estimate(MeanEstimate(mean=0.5, low=None, high=None, seeds=1)) == "0.5"
    assert show_estimate(None) == "-"


def test_the_parts_of_an_algorithm_are_named_among_its_settings():
    labels = ("collm_cc", "magrpo")
    configs = [load_config("quickstart", {"algorithm.name": label}) for label in labels]
    table = settings_table([config.model_dump(mode="json") for config in configs])
    values_by_key = {setting.key: setting.values for setting in table}
    assert values_by_key["algorithm.rollout.name"] == ("chain", "tree")
    assert values_by_key["algorithm.advantage.name"] == ("gae", "group_mean")
    assert values_by_key["algorithm.critic.name"] == ("centralized", "-")
    assert "{}" not in {
        value for key in values_by_key for value in values_by_key[key] if "algorithm." in key
    }


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((-1.4, -1.7, -1.105), "-1.40 [-1.70, -1.10]"),
        ((-1.332, -1.76, -0.9034), "-1.33 [-1.76, -0.90]"),
        ((0.0556, -0.0042, 0.1153), "0.0556 [-0.0042, 0.1153]"),
        ((0.001, -0.7, 0.702), "0.001 [-0.700, 0.702]"),
        ((13.8, 9.76, 17.8), "13.8 [9.8, 17.8]"),
        ((54313.2, 51818.0, 56809.0), "54,313 [51,818, 56,809]"),
        ((2.0, 2.0, 2.0), "2 [2, 2]"),
        ((5.0, -0.004, 10.0), "5.00 [0.00, 10.00]"),
    ],
)
def test_an_interval_has_the_decimals_of_its_mean(numbers, text):
    mean, low, high = numbers
    assert show_estimate(MeanEstimate(mean=mean, low=low, high=high, seeds=3)) == text


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Path:
    """A report of runs that are judged by `adjacency`, of which lower is better."""
    folder = fabricated.write_comparison(tmp_path_factory.mktemp("judged"), range(4))
    for path in folder.glob("runs/*/run.json"):
        record = json.loads(path.read_text())
        record["headline"] = {"metric": "adjacency", "better": "lower"}
        path.write_text(json.dumps(record))
    for path in folder.glob("runs/*/metrics.jsonl"):
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        for line in lines:
            line["metrics"]["objective"] = 7.25
        fabricated.write_jsonl(path, lines)
    with undrawn():
        write_report(folder)
    return folder


def test_headline_curves_and_pairs_follow_the_metric_that_the_runs_name(judged):
    summary = json.loads((judged / "summary.json").read_text())
    assert summary["headline"].startswith("Evaluation adjacency (lower is better): ")
    first = summary["algorithms"]["collm_cc"]
    finals = [run["final"] for run in summary["runs"] if run["algorithm"] == "collm_cc"]
    assert first["metrics"]["adjacency"]["last"]["mean"] == pytest.approx(sum(finals) / 4)
    assert first["curves"]["environment_steps"]["mean"][0] > 12, "adjacency starts at 14"
    over = next(p for p in summary["pairs"] if (p["x"], p["y"]) == ("collm_cc", "collm_dc"))
    assert over["probability"]["mean"] == 1.0, "its adjacency falls furthest"


def test_the_lowest_mean_is_bold_where_lower_is_better(judged):
    (row,) = [
        line
        for line in (judged / "table.md").read_text().splitlines()
        if line.startswith("| collm_cc | ")
    ][:1]
    assert row.split(" | ")[2].startswith("**")


@pytest.mark.usefixtures("no_figures")
def test_intervals_end_at_the_bounds_of_a_metric_and_that_of_the_gain_does_not(judged, page):
    """The largest last value of iou is 0.7517, its interval ends at 0.7575 by Student's t."""
    free = json.loads((judged / "summary.json").read_text())["algorithms"]["collm_cc"]
    drawn = free["curves"]["environment_steps"]
    least = min(min(values) for _, values in drawn["seeds"].values())
    for path in judged.glob("runs/collm_cc-*/run.json"):
        record = json.loads(path.read_text())
        record["ranges"] = {"iou": [0.0, 0.755], "adjacency": [least, None]}
        path.write_text(json.dumps(record))
    write_report(judged)
    cut = json.loads((judged / "summary.json").read_text())["algorithms"]["collm_cc"]
    before, after = free["metrics"]["iou"], cut["metrics"]["iou"]
    assert before["last"]["high"] == pytest.approx(0.7575, abs=1e-4)
    assert after == before | {"last": before["last"] | {"high": 0.755}}
    assert min(drawn["low"]) < least == min(cut["curves"]["environment_steps"]["low"])
    assert "cut at the known bounds" in page


def test_what_is_optimised_stands_apart_from_what_is_compared(judged):
    text = (judged / "table.md").read_text()
    assert "## Training objective" in text and "| Objective before | Objective after |" in text
    others = text.partition("## Other metrics")[2].partition("##")[0]
    assert "| return after |" in others and "objective" not in others


@pytest.mark.usefixtures("no_figures")
def test_costs_of_a_tasks_services_are_lines_of_the_overhead(tmp_path):
    folder = fabricated.write_comparison(tmp_path, range(2))
    for path in folder.glob("runs/collm_cc-*/run.json"):
        record = json.loads(path.read_text())
        record["costs"] = {"judge calls": 12.0}
        path.write_text(json.dumps(record))
    write_report(folder)
    overhead = (folder / "table.md").read_text().partition("## Training overhead")[2]
    (line,) = [line for line in overhead.splitlines() if line.startswith("| Judge calls |")]
    assert line.split(" | ")[1] == "12"
    assert overhead.splitlines()[4].split(" | ")[1].startswith("collm_cc")
