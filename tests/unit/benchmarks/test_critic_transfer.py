"""Given critics on private stakes: the names under which fits and runs are kept."""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from critic_transfer import played

OPTIONS = {"network": "embedded-tiny", "paired": True, "untrained": 5120}


def test_fits_of_other_readings_and_of_other_play_have_names_of_their_own():
    assert played(Namespace(**OPTIONS)) == "embedded-tiny-paired-5120"
    assert played(Namespace(**OPTIONS | {"paired": False})) == "embedded-tiny-5120"
    assert played(Namespace(**OPTIONS | {"untrained": 0})) == "embedded-tiny-paired-0"
