"""A comparison says how much its critics explain, and that below one half it is not about them."""

import json

import fabricated_runs as fabricated
import pytest

from colearn.report import write_report

CAUTION = "explain less than half of the variance of returns"


def write_explained(folder, explained, seeds=(0, 1)):
    """Run folders whose updates have these explained variances, by algorithm."""
    for algorithm, values in explained.items():
        for seed in seeds:
            run = folder / "runs" / f"{algorithm}-s{seed}"
            fabricated.write_run(run, algorithm, seed)
            path = run / "metrics.jsonl"
            lines = [json.loads(text) for text in path.read_text().splitlines()]
            updates = [
                {**lines[1], "iteration": 1 + n, "metrics": {"critic/explained_variance": value}}
                for n, value in enumerate(values)
            ]
            fabricated.write_jsonl(path, [lines[0], *updates, *lines[2:]])
    write_report(folder)
    return json.loads((folder / "summary.json").read_text()), (folder / "table.md").read_text()


def test_a_critic_that_explains_less_than_half_says_nothing_about_critics(tmp_path):
    summary, table = write_explained(tmp_path, {"collm_cc": [0.1, 0.2, 0.3], "magrpo": []})
    sentence = (
        "The critic of collm_cc (0.2) explains less than half of the variance of returns: "
        "this comparison says nothing about it."
    )
    assert summary["headline"].endswith(sentence)
    assert sentence in table


def test_critics_are_named_together(tmp_path):
    summary, _ = write_explained(tmp_path, {"collm_cc": [0.49], "collm_dc": [-1.0]})
    assert summary["headline"].endswith(
        f"The critics of collm_cc (0.49) and collm_dc (-1) {CAUTION}: "
        "this comparison says nothing about them."
    )


def test_a_critic_that_explains_half_needs_no_caution(tmp_path):
    summary, _ = write_explained(tmp_path, {"collm_cc": [0.5], "magrpo": []})
    assert "variance" not in summary["headline"]


def test_one_algorithm_alone_compares_nothing(tmp_path):
    summary, _ = write_explained(tmp_path, {"collm_cc": [0.1]})
    assert "variance" not in summary["headline"]


def test_one_wild_update_does_not_move_the_explained_variance(tmp_path):
    summary, _ = write_explained(tmp_path, {"collm_cc": [0.7, 0.8, -900.0], "magrpo": []})
    assert summary["algorithms"]["collm_cc"]["explained_variance"]["mean"] == pytest.approx(0.7)


def test_the_table_of_results_has_the_explained_variance_beside_them(tmp_path):
    _, table = write_explained(tmp_path, {"collm_cc": [0.25], "magrpo": []})
    head, _, critic, group = table.splitlines()[8:12]
    assert head.split(" | ")[5] == "Explained variance |"
    assert critic.split(" | ")[5].startswith("0.25")
    assert group.split(" | ")[5] == "- |"


def test_a_table_without_critics_has_no_column_for_them(tmp_path):
    _, table = write_explained(tmp_path, {"magrpo": [], "marloo": []})
    assert "Explained variance" not in table
