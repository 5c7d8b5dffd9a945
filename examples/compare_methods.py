# Hardware: Two CPU cores, no download, about 2 minutes.
# Shows: two methods on one task, two seeds each, with intervals.
from __future__ import annotations

import colearn

if __name__ == "__main__":
    config = colearn.load_config(
        "quickstart",
        {
            "train.environment_steps": 600,
            "compare.algorithms": {"collm_cc": {}, "magrpo": {"algorithm.rollout.k": 2}},
            "compare.seeds": [0, 1],
        },
    )
    print(colearn.compare(config, "runs/compare_methods"))
