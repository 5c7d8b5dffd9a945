"""Dry runs for machines and models that are not here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from estimated import *  # noqa: F403 - fixtures
from tiny import register
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from colearn.config import load_config, shipped_configs
from colearn.entry.cli import app
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.stand_ins import published_config, stand_in_tokenizer
from colearn.rollout.agents import ChatFormat

pytestmark = pytest.mark.usefixtures("no_passes")


@pytest.fixture
def settings(model: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": model}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {"episodes": 2},
        "evaluation": {"episodes": 1},
    }


@pytest.mark.parametrize(
    ("name", "parameters"),
    [  # as counted by the safetensors files that are published
        ("Qwen/Qwen3-0.6B", 596_049_920),
        ("Qwen/Qwen3-1.7B", 1_720_574_976),
        ("Qwen/Qwen3-4B-Instruct-2507", 4_022_468_096),
        ("Qwen/Qwen3-8B", 8_190_735_360),
        ("Qwen/Qwen2.5-Coder-3B", 3_085_938_688),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("google/gemma-3-270m-it", 268_098_176),
    ],
)
def test_a_published_architecture_has_the_published_number_of_parameters(
    name: str, parameters: int
) -> None:
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(published_config(name))
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_an_unpublished_name_has_no_architecture() -> None:
    assert published_config("nobody/nothing") is None


@pytest.mark.parametrize("name", [n for n in shipped_configs() if n.startswith("paper/")])
def test_the_architecture_of_each_model_of_a_paper_config_is_known(name: str) -> None:
    config = load_config(name)
    bases = config.base if isinstance(config.base, dict) else {"": config.base}
    assert bases and all(published_config(str(path)) is not None for path in bases.values())


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        # 10^9 bytes of each device are for the context
        ("2xH100-80GB", Machine(2, 79_000_000_000)),
        ("a100-SXM4-40GB", Machine(1, 39_000_000_000)),
        ("A100-64GB", Machine(1, 63_000_000_000)),
        ("4x24GB", Machine(4, 23_000_000_000)),
        ("1.5gb", Machine(1, 500_000_000)),
    ],
)
def test_a_machine_is_a_count_and_a_memory(text: str, machine: Machine) -> None:
    assert read_machine(text) == machine


@pytest.mark.parametrize("text", ["", "2x", "H100", "0xH100-80GB", "H100-0GB", "-1x80GB", "80"])
def test_another_form_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--devices .*: write COUNTxNAME-MEMORY, such as 2xH"):
        read_machine(text)


def test_a_device_that_holds_the_context_alone_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^--devices 1GB: the CUDA context takes 1 GB of each"):
        read_machine("1GB")


def test_auto_is_the_first_device_and_cpu_stays_cpu() -> None:
    machine = read_machine("2xH100-80GB")
    names = ("auto", "cuda", "cuda:1", "cpu")
    assert [machine.device(name, "run.device") for name in names] == [
        "cuda:0",
        "cuda:0",
        "cuda:1",
        "cpu",
    ]


@pytest.mark.parametrize("name", ["cuda:2", "mps"])
def test_a_device_beyond_the_machine_is_named_with_its_field(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^placement.a: no device {name} among --devices"):
        read_machine("2xH100-80GB").device(name, "placement.a")


def test_networks_are_placed_on_the_described_devices(settings: dict[str, Any]) -> None:
    config = load_config(settings, ["models.ben.path=" + settings["models"]["*"]["path"]])
    config = load_config(config.model_dump(mode="json"), ["placement.ben=cuda:1"])
    made = estimate(config, machine=read_machine("2xH100-80GB"))
    devices = {str(network.key): network.device for network in made.networks}
    assert devices == {"actor-ada": "cuda:0", "actor-ben": "cuda:1"}
    assert made.too_small == () and made.peak("cuda:1") > 0


def test_a_device_that_is_too_small_is_named(settings: dict[str, Any]) -> None:
    whole = estimate(load_config(settings), machine=Machine(1, 10**12))
    peak = whole.peak("cuda:0")
    assert estimate(load_config(settings), machine=Machine(1, peak)).too_small == ()
    assert estimate(load_config(settings), machine=Machine(1, peak - 1)).too_small == ("cuda:0",)


def test_config_json_alone_is_enough(settings: dict[str, Any], model: str, tmp_path: Path) -> None:
    folder = tmp_path / "sizes"
    folder.mkdir()
    shutil.copy(Path(model) / "config.json", folder)
    settings["models"]["*"]["path"] = str(folder)
    made = estimate(load_config(settings), machine=Machine(1, 10**12))
    assert made.notes["models.ada.path"] == "no tokenizer here: a token per 3 characters"


def test_weights_without_a_tokenizer_are_an_error(
    settings: dict[str, Any], model: str, tmp_path: Path
) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(Path(model) / name, folder)
    settings["models"]["*"]["path"] = str(folder)
    with pytest.raises(ConfigError, match=r"models\.ada\.path: cannot load"):
        estimate(load_config(settings))


def test_the_stand_in_counts_a_token_per_three_characters() -> None:
    tokenizer = stand_in_tokenizer()
    assert len(tokenizer("x" * 300, add_special_tokens=False)["input_ids"]) == 100
    opening = ChatFormat(tokenizer).open("hello!").tokens
    # <|im_start|> us er\n hel lo! <|im_end|> \n <|im_start|> ass ist ant \n
    assert len(opening) == 12


def test_a_stream_over_the_limit_by_an_assumed_tokenizer_is_a_note(
    settings: dict[str, Any], model: str, tmp_path: Path
) -> None:
    folder = tmp_path / "sizes"
    folder.mkdir()
    shutil.copy(Path(model) / "config.json", folder)
    settings |= {"algorithm": {"name": "collm_cc"}, "critic": {"path": model, "max_length": 9}}
    with pytest.raises(ConfigError, match=r"^critic\.max_length: a stream of"):
        estimate(load_config(settings), machine=Machine(1, 10**12))
    settings["critic"]["path"] = str(folder)
    made = estimate(load_config(settings), machine=Machine(1, 10**12))
    assert made.notes["critic.max_length"].startswith("may be too small: a stream of")


def test_the_command_line_compares_the_peak_with_the_memory(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(yaml.safe_dump(settings))
    run = CliRunner().invoke(app, ["train", str(path), "--dry-run", "--devices", "2xH100-80GB"])
    assert run.exit_code == 0 and "of 79.0 GB" in run.output
    assert "fits into the memory of --devices" in run.output
    small = ["compare", str(path), "--dry-run", "--devices", "1.000001GB"]
    assert "does not fit: cuda:0" in CliRunner().invoke(app, small).output


def test_processes_without_a_dry_run_are_an_error(settings: dict[str, Any], tmp_path: Path) -> None:
    """The run would have been one process, in silence."""
    out = str(tmp_path / "run")
    run = CliRunner().invoke(app, ["train", "quickstart", "--processes", "3", "--out", out])
    assert isinstance(run.exception, ConfigError)
    assert str(run.exception).startswith("--processes: describes a launcher for --dry-run")


def test_devices_without_a_dry_run_are_an_error(settings: dict[str, Any]) -> None:
    run = CliRunner().invoke(app, ["train", "quickstart", "--devices", "2xH100-80GB"])
    assert isinstance(run.exception, ConfigError)
    assert str(run.exception).startswith("--devices: describes a machine for --dry-run")
