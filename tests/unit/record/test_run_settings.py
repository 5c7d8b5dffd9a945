"""A recorded run's settings are read back whatever form of them the config used."""

import pytest
import yaml

from colearn.errors import CheckpointError
from colearn.runs.record import RunFolder


def written(folder, **settings):
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    return RunFolder(folder)


@pytest.mark.parametrize("base", ["Qwen/Qwen3-4B", {"small": "Qwen/Qwen3-0.6B"}, None])
def test_the_base_of_all_models_is_a_name_or_names(tmp_path, base):
    run = written(tmp_path, task={"name": "solver"}, base=base, wrapper="parallel")
    assert run.settings()["base"] == base


def test_a_section_that_is_no_mapping_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="models is no section"):
        written(tmp_path, base="Qwen/Qwen3-4B", models="embedded").settings()
