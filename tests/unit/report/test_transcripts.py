"""Which episodes a report shows, and what of them."""

from __future__ import annotations

from pathlib import Path

import fabricated_runs as fabricated
import pytest
import yaml

from colearn.runs.record import Episode, RunFolder, read_run
from colearn.runs.report import write_report
from colearn.runs.report.critic_text import critic_of, critic_texts
from colearn.runs.report.transcripts import PicturedEpisode

TURNS = [
    {
        "observations": {"left": "a corner", "right": "an edge"},
        "actions": {"left": "go", "right": "stay"},
        "global_info": "turn 0",
        "privileged_info": "gold is left",
    },
    {"observations": {"left": "dark", "right": "dark"}, "actions": {"left": "dig", "right": ""}},
]
"""The second turn shows both agents the same."""


def test_the_parts_of_a_count_that_are_0_are_left_out() -> None:
    """A number that is no part of another is shown when it is 0, too."""
    metrics = {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0, "reopened_shorter": 0.0}
    episode = Episode.model_validate({"iteration": 0, "item": "", "metrics": metrics})
    shown = PicturedEpisode(record=episode, pictures=())
    assert shown.metrics == {"solved": 0.0, "reopened": 1.0, "reopened_edited": 1.0}


def read_by(folder: Path, algorithm: str, **settings: object) -> tuple[dict[str, str], ...]:
    fabricated.write_run(folder, algorithm, 0)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["algorithm"] = {"name": algorithm, **settings}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    run = read_run(RunFolder(folder))
    critic = critic_of(run)
    assert critic is not None
    return critic_texts(critic, Episode(iteration=0, item="", turns=TURNS), run)


def test_a_central_critic_read_all_observations_and_what_no_agent_sees(tmp_path: Path) -> None:
    first = "[left 0]\na corner\n[right 0]\nan edge\n[global 0]\nturn 0\n[hidden 0]\ngold is left"
    second = "[left 0]\ngo\n[right 0]\nstay\n[all 1]\ndark"
    assert read_by(tmp_path / "run", "collm_cc") == ({"team": first}, {"team": second})


def test_a_decentral_critic_read_one_agents_history(tmp_path: Path) -> None:
    assert read_by(tmp_path / "run", "collm_dc") == (
        {
            "left": "[left 0]\na corner\n[global 0]\nturn 0",
            "right": "[right 0]\nan edge\n[global 0]\nturn 0",
        },
        {"left": "[left 0]\ngo\n[left 1]\ndark", "right": "[right 0]\nstay\n[right 1]\ndark"},
    )


def test_a_critic_of_joint_actions_read_the_last_one_too(tmp_path: Path) -> None:
    """Q(h_t, a_t) is read behind a_t."""
    first = "[left 0]\na corner\n[right 0]\nan edge\n[global 0]\nturn 0\n[hidden 0]\ngold is left"
    q = {"critic": {"name": "centralized", "value": "q"}, "advantage": "q_value"}
    assert read_by(tmp_path / "run", "collm_cc", **q) == (
        {"team": f"{first}\n[left 0]\ngo\n[right 0]\nstay"},
        {"team": "[all 1]\ndark\n[left 1]\ndig\n[right 1]\n"},
    )


@pytest.mark.parametrize("algorithm", ["magrpo", "untrained", "own:Algorithm"])
def test_without_a_known_critic_the_page_shows_no_input(tmp_path: Path, algorithm: str) -> None:
    fabricated.write_run(tmp_path / "run", "magrpo", 0)
    config = (tmp_path / "run" / "config.yaml").read_text()
    (tmp_path / "run" / "config.yaml").write_text(config.replace("magrpo", algorithm))
    assert critic_of(read_run(RunFolder(tmp_path / "run"))) is None


@pytest.mark.usefixtures("no_figures")
def test_the_page_folds_what_the_critic_read_at_each_turn(tmp_path: Path) -> None:
    fabricated.write_run(tmp_path / "run", "collm_cc", 0)
    page = write_report(tmp_path / "run").read_text()
    folded = "<details><summary>what the critic read here</summary><pre>[left 0]\n"
    assert page.count(folded) == 4, "two turns of two episodes"
    assert "[left 0]\nturn 0: build &lt;ICML&gt;" in page
