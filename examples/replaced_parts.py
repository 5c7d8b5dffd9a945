# Hardware: Two CPU cores, no download, about 1 minute.
# Shows: an algorithm is parts; here MAGRPO with two of them replaced.
from __future__ import annotations

import colearn
from colearn.algorithms.magrpo import MAGRPO
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import Parallel

if __name__ == "__main__":
    algorithm = MAGRPO(
        rollout=Parallel(k=4),  # four independent episodes per item instead of a tree
        loss=PolicyGradient(ratio="token", clip=0.2),
    )
    result = colearn.train(
        {"name": "dpomdp", "problem": "climbing"},
        algorithm,
        models={"path": "embedded-tiny", "learning_rate": 1e-3},
        agents={"*": {"sampling": {"max_tokens": 6}}},
        train={"environment_steps": 1000},
    )
    print(f"{result} of at most 11")
