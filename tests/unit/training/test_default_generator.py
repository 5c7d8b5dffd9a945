"""vLLM is the generator where nothing else is named, and a device and the package are here."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.config import load_config
from colearn.training.default_generator import with_default_generator


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colearn.training.default_generator._package", lambda: True)


def config(**sections: Any) -> Any:
    plain: dict[str, Any] = {
        "task": {"name": "str_build"},
        "models": {"*": {"path": "embedded"}},
        "agents": {"*": {}},
    }
    return load_config(plain | sections)


def generator(made: Any, device: str = "cuda", **settings: Any) -> str:
    return str(with_default_generator(made, device, **settings).run.generator.name)


@pytest.mark.usefixtures("package")
def test_vllm_is_the_default_on_a_cuda_device_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert generator(config(), tells=True) == "vllm"
    assert capsys.readouterr().err == (
        "run.generator: vllm, because a CUDA device and the package are here; run.generator: "
        "transformers decodes with the trained models themselves\n"
    )


def test_without_the_package_models_decode_themselves() -> None:
    assert generator(config()) == "transformers"


@pytest.mark.usefixtures("package")
def test_on_a_cpu_models_decode_themselves() -> None:
    assert generator(config(), "cpu") == "transformers"


@pytest.mark.usefixtures("package")
def test_a_generator_that_is_named_is_kept() -> None:
    assert generator(config(run={"generator": "transformers"})) == "transformers"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("sections", "lacks"),
    [
        ({"agents": {"*": {"window": 8}}}, "context windows"),
        ({"agents": {"*": {"sampling": {"temperature": 0.001}}}}, "temperatures between 0 and"),
        (
            {"models": {"*": {"path": "x", "lora": {}, "quantization": "nf4"}}},
            "bases in 4 bits",
        ),
    ],
)
def test_what_vllm_lacks_is_decoded_by_the_models_and_a_line_says_why(
    sections: dict[str, Any], lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator(config(**sections), tells=True) == "transformers"
    told = capsys.readouterr().err
    assert told.startswith(f"run.generator: transformers, because vLLM has no {lacks}")


def test_a_run_goes_on_with_the_generator_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = config(run={"generator": "vllm"})
    assert generator(config(), recorded=recorded) == "vllm"
    monkeypatch.setattr("colearn.training.default_generator._package", lambda: True)
    assert generator(config(), recorded=config()) == "transformers"
