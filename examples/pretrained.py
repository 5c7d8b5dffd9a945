# Hardware: A CPU with 16 GB or one GPU, about 4 minutes; needs the folder of a language model.
# Shows: two adapters on one frozen base learn to answer alike, without seeing each other's answer.
from __future__ import annotations

import sys
from typing import Any

import colearn

KINDS = (
    *("fruit", "animal", "colour", "city", "country", "river", "bird", "fish"),
    *("tree", "flower", "metal", "planet", "sport", "tool", "vegetable", "instrument"),
)
ROWS = [{"prompt": f"Question: Name a {kind}.\nAnswer:"} for kind in KINDS]


def agreement(team_completions: list[dict[str, str]], **_: Any) -> list[float]:
    """The words that both agents use, as a share of the words that either uses."""
    scores = []
    for answers in team_completions:
        first, second = (set(answer.lower().split()) for answer in answers.values())
        scores.append(len(first & second) / max(1, len(first | second)))
    return scores


if __name__ == "__main__":
    base = sys.argv[1]  # such as a folder of Gemma 3 270M, or "Qwen/Qwen3-0.6B"
    adapter = {"path": base, "lora": {"rank": 16}}
    result = colearn.train(
        {
            "name": "dataset",
            "agents": {"left": "{prompt}", "right": "{prompt}"},
            "test_share": 0.25,
        },
        {"name": "collm_cc", "loss": {"ratio": "token", "clip": 0.2}},
        data=ROWS,
        reward=agreement,
        models={**adapter, "learning_rate": 3e-4},
        critic={**adapter, "learning_rate": 1e-4},
        agents={"*": {"sampling": {"temperature": 0.7, "max_tokens": 8}}},
        train={"environment_steps": 384, "episodes": 24},
        evaluation={"every": 8, "episodes": 16},
    )
    print(result)
