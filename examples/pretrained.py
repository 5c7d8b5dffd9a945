# Hardware: A CPU with 16 GB or one GPU, about 10 minutes on two cores; needs a chat model's folder.
# Shows: adapters on one frozen base.
from __future__ import annotations

import sys

import colearn

if __name__ == "__main__":
    base = sys.argv[1]  # such as a folder of Gemma 3 270M, or "Qwen/Qwen3-0.6B"
    model = {"path": base, "lora": {"rank": 16}, "learning_rate": 1.5e-4}
    result = colearn.train(
        {"name": "str_build", "horizon": 2},
        {"name": "collm_cc", "loss": {"ratio": "token", "clip": 0.2}},
        models=model,
        critic={**model, "learning_rate": 5e-5},
        agents={"*": {"sampling": {"temperature": 0.7, "max_tokens": 32}}},
        train={"environment_steps": 96, "episodes": 12},
        evaluation={"every": 4, "episodes": 12},
    )
    print(result)
