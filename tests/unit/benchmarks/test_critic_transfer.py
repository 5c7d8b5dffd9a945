"""Given critics on private stakes: the names under which fits and runs are kept."""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from critic_transfer import played

OPTIONS = {"network": "embedded-tiny", "paired": True, "untrained": 5120, "hot": 0.0}


def test_a_fit_on_play_at_another_temperature_has_a_name_of_its_own():
    assert played(Namespace(**OPTIONS)) == "embedded-tiny-paired-5120"
    assert played(Namespace(**OPTIONS | {"hot": 1.5})) == "embedded-tiny-paired-5120-hot1.5"
