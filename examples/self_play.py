# Hardware: Two CPU cores, no download, about 2 minutes; needs ".[games]".
# Shows: self-play in Kuhn poker with its exact NashConv.
from __future__ import annotations

import colearn

if __name__ == "__main__":
    result = colearn.train(
        {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
        {
            "name": "marshal",
            "loss": {"kl": 0.5, "reference_update_every": 10},
            "advantage": {"equal_trajectories": False},  # every turn alike: not the paper's Eq. 3
        },
        models={"player": {"path": "embedded-tiny", "learning_rate": 3e-3, "schedule": "cosine"}},
        agents={"*": {"model": "player", "sampling": {"max_tokens": 4}}},
        train={"environment_steps": 12000, "episodes": 256, "epochs": 4},
        evaluation={
            "every": 5,
            "exact": True,
            "headline": {"metric": "nash_conv", "better": "lower"},
        },
    )
    for steps, value in result.curve():
        print(f"{steps:6} joint actions: NashConv {value:.3f} (0 is an equilibrium)")
