"""A run that has not ended has no report."""

import fabricated_runs as fabricated
import pytest

from colearn.errors import CheckpointError
from colearn.runs.report import write_report


def test_the_report_of_one_unfinished_run_says_how_to_go_on(tmp_path):
    fabricated.write_run(tmp_path / "run", "magrpo", 3)
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(
        CheckpointError, match=r"not finished; .*: colearn train --out \S+ --resume"
    ):
        write_report(tmp_path / "run")
