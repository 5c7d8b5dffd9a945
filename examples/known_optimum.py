# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: a Dec-POMDP with a known optimum, measured exactly and not by samples.
from __future__ import annotations

import colearn
from colearn.tasks.dpomdp import TextDecPOMDP

if __name__ == "__main__":
    task = TextDecPOMDP(problem="two_step")
    result = colearn.train(
        task,
        "collm_cc",
        models={"path": "embedded-tiny", "learning_rate": 1e-3},
        critic={"path": "embedded-tiny", "learning_rate": 1e-2},
        agents={"*": {"sampling": {"max_tokens": 6}}},
        train={"environment_steps": 2000},
        evaluation={"exact": True},
    )
    print(f"exact return {result.metrics['exact_return']:.2f}; the optimum is 8")
