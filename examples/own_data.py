# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: two agents learn your rows under your reward functions.
from __future__ import annotations

from typing import Any

import colearn

COLOURS = ("red", "green", "blue")
ROWS = [
    {"prompt": f"paint {n} {colour}", "colour": colour} for n in range(20) for colour in COLOURS
]

ALGORITHM = {
    "name": "collm_cc",
    "loss": {"ratio": "token", "clip": 0.2},
    "advantage": {"normalize": True},
}


def matches(completions: list[str], colour: list[str], **_: Any) -> list[float]:
    """1 for the right colour; `final`, the last agent, gives the team's answer."""
    return [float(said.strip() == right) for said, right in zip(completions, colour, strict=True)]


def brief(completions: list[str], **_: Any) -> list[float]:
    """A bonus of 0.1 for an answer of one word."""
    return [0.1 * (len(said.split()) == 1) for said in completions]


if __name__ == "__main__":
    result = colearn.train(
        {"name": "dataset", "agents": ["draft", "final"], "words": list(COLOURS)},
        ALGORITHM,
        data=ROWS,
        reward=[matches, brief],
        models={"path": "embedded-copy", "learning_rate": 1e-3},
        critic={"path": "embedded-copy", "learning_rate": 1e-2},
        agents={"*": {"sampling": {"max_tokens": 4}}},
        train={"environment_steps": 1000, "episodes": 32, "minibatch": 16},
    )
    print(result)
    for steps, value in result.curve():
        print(f"{steps:6} joint actions: return {value:.2f}")
