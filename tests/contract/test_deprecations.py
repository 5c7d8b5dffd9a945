"""A deprecated call of a library fails the test that makes it, if this project's code makes it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest
from deprecations import ROOT, DeprecatedCall
from tiny import tiny_model

OWN = "colearn/models/planted.py"


def planted(source: str, file: str = OWN, **names: Any) -> Any:
    """`call`, as a file of the project defines it."""
    exec(compile(source, str(ROOT / file), "exec"), names)
    return names["call"]


PROPERTY = "def call(): return model.is_gradient_checkpointing"


def test_a_deprecated_property_of_a_model_is_refused() -> None:
    """transformers attributes the warning to its own file."""
    model = tiny_model()
    with pytest.raises(DeprecatedCall, match=rf"^{OWN}: `is_gradient_checkpointing` is deprecated"):
        planted(PROPERTY, model=model)()


def test_a_deprecated_argument_that_is_told_in_the_log_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers.utils import logging as logs

    monkeypatch.setattr(logging.getLogger("transformers"), "level", logging.ERROR)
    logger = logs.get_logger("transformers.modeling_utils")
    telling = "def told(): logger.warning('`torch_dtype` is deprecated! Use `dtype` instead!')"
    library = planted(
        telling.replace("told", "call"),
        _file_of("transformers") + "/modeling_utils.py",
        logger=logger,
    )
    with pytest.raises(DeprecatedCall, match=r"`torch_dtype` is deprecated"):
        planted("def call(): library()", library=library)()


def test_a_call_by_another_library_is_not_ours() -> None:
    """peft stands between: what it calls is for its authors to change."""
    inner = planted(PROPERTY, _file_of("peft") + "/tuners/planted.py", model=tiny_model())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planted("def call(): return inner()", inner=inner)()


def test_a_warning_that_names_our_file_is_an_error() -> None:
    """As compiled code of torch does, which no function of `warnings` sees."""
    with pytest.raises(FutureWarning):
        warnings.warn_explicit("old", FutureWarning, str(ROOT / OWN), 1, module="colearn.models")


def _file_of(package: str) -> str:
    import importlib
    from pathlib import Path

    return str(Path(str(importlib.import_module(package).__file__)).parent)
