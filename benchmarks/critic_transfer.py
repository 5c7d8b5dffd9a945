r"""Private stakes with a given critic: joint actions to 90% beside teams that learn one themselves.

    python benchmarks/critic_transfer.py --out transfer --team 8     # resumable, one core
    python benchmarks/critic_transfer.py --out transfer --team 8 --source play
    python benchmarks/critic_transfer.py --out transfer --paired --network embedded-tiny-untrained \
        --untrained 5120 --fit-epochs 2 --fit-minibatch 32
    python benchmarks/critic_transfer.py --out transfer --source none --paired
    python benchmarks/critic_transfer.py --out transfer --source exact

COMA's runs of other seeds are recorded, a critic is fitted on their episodes (as by `colearn critic
fit`), and fresh teams are given it, frozen. With `--source play` it is fitted on the play of
untrained teams of two agents, then of twice as many, up to the team's size, each fit from the
critic before it. With `none` the teams learn their critic themselves, `exact` is the task's own Q
at the same setting, and `collm_cc` and `magrpo` are these methods. `--base` names the fresh teams'
model: an embedded one, or `gpt2`, of another family and tokenizer (`_other_base.py`) than the
recorded ones. `--untrained` adds the play of an untrained team to the fit. Every line of runs.jsonl
counts the joint actions that the critic was trained on. A run ends once it has reached 90% at two
evaluations in a row.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stakes
from _critic_runs import critic_columns, explained, finished, fitted
from _other_base import LONGEST, other_base

from colearn.contract import Callback
from colearn.contract.callback import EvaluateEvent
from colearn.models.embedded import embedded_model
from colearn.training.critic_fit import FitSettings

OPTIONS = argparse.Namespace(
    rate=4e-3,
    batch=32,
    every=2,
    schedule="linear",
    clip=0.2,
    kl=0.02,
    epochs=4,
    actor_epochs=None,
    critic="embedded-tiny",
    critic_rate=5e-3,
    warmup=0,
    critic_minibatch=32,
    episodes=256,
)
"""COMA's tuned setting of the table with eight agents, as `stakes.py` has it."""
BASES: dict[str, dict[str, Any]] = {
    "embedded": {"rate": 2e-3},
    "gpt2": {"rate": 1e-3, "kl": 0.05, "schedule": "constant"},
}
"""What differs for teams of these bases, chosen with the exact Q (`critic_transfer.md`)."""
METHODS = {"exact": "known", "collm_cc": "collm_cc", "magrpo": "magrpo"}


def settings_of(
    team: int, seed: int, steps: int, method: str = "coma", **changed: Any
) -> dict[str, Any]:
    """`changed`: options that differ from `OPTIONS`."""
    options = argparse.Namespace(**{**vars(OPTIONS), "steps": steps, **changed})
    return stakes.config_of(method, team, seed, options)


def record(folder: Path, team: int, seed: int, steps: int) -> None:
    settings = settings_of(team, seed, steps)
    settings["train"]["record"] = True
    settings["evaluation"]["every"] = 10**6
    finished(folder, settings)


def play(folder: Path, team: int, seed: int, steps: int) -> None:
    """Record the episodes of an untrained team."""
    settings = settings_of(team, seed, steps)
    settings |= {"algorithm": {"name": "mareinforce"}, "critic": None}
    settings["models"]["*"] |= {"learning_rate": 1e-12, "schedule": "constant"}
    settings["train"] |= {"record": True, "epochs": 1, "episodes": 256, "minibatch": 256}
    settings["evaluation"] |= {"every": 10**6, "episodes": 8}
    finished(folder, settings)


def fit(out: Path, runs: list[Path], settings: FitSettings, start: str, *, paired: bool) -> Path:
    """`start`: the setting that names the network to begin with."""
    sets = ["critic.learning_rate=3e-3", "critic.head_learning_rate=1e-2"]
    sets += ["critic.schedule=linear", *start.split()]
    sets += [f"algorithm.critic={{name: counterfactual, paired: {str(paired).lower()}}}"]
    return fitted(out, runs, settings, sets, "coma")


def ladder(
    out: Path, team: int, joint_actions: int, settings: FitSettings, *, paired: bool
) -> Path:
    """A critic of untrained play: of two agents first, whose parts are easily told apart. Its base
    is that of the whole team, whose tokenizer knows all names."""
    base = embedded_model(stakes.Stakes(team), "embedded-tiny:900", "critic.path")
    start, size = f"critic.path={base}", 2
    while True:
        run = out / f"played-{size}"
        play(run, size, 920, joint_actions)
        name = f"critic-played-{size}{'-paired' * paired}"
        critic = fit(out / name, [run], settings, start, paired=paired)
        if size == team:
            return critic
        start, size = f"critic.path=null critic.from={critic} critic.foreign=true", 2 * size


@dataclass(frozen=True)
class Stop(Callback):
    """Ends a run at the second of two evaluations in a row that reach 90%."""

    shares: list[float] = field(default_factory=list, init=False)

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self.shares.append(event.metrics["share"])
        if len(self.shares) > 1 and min(self.shares[-2:]) >= 0.9:
            event.stop = "reached 90%"


def measured(out: Path, settings: dict[str, Any], team: int, seed: int, label: str) -> Any:
    settings["run"]["callbacks"] = ["critic_transfer:Stop"]
    folder = finished(out / "runs" / f"{label}-{team}-{seed}", settings)
    curve = [(one.environment_steps, one.metrics["share"]) for one in folder.evaluations()]
    return {
        "label": label,
        "team": team,
        "seed": seed,
        "curve": curve,
        "to_90": stakes.reached(curve, 0.9),
        **critic_columns(folder),
        **explained(folder, "action_worth", "critic/action_worth"),
    }


def given(options: argparse.Namespace, source: int) -> Path:
    """The critic of a team of `source` agents, fitted if it is not there yet."""
    settings = FitSettings(epochs=options.fit_epochs, minibatch=options.fit_minibatch)
    if options.source == "play":
        return ladder(options.out, source, options.played, settings, paired=options.paired)
    runs = [options.out / f"recorded-{source}-{900 + n}" for n in range(options.recorded)]
    for number, folder in enumerate(runs):
        record(folder, source, 900 + number, options.recorded_steps)
    if options.untrained:
        runs.append(options.out / f"untrained-{source}")
        play(runs[-1], source, 960, options.untrained)
    start = f"critic.path={options.network}:900"
    name = f"critic-{source}-{played(options)}"
    return fit(options.out / name, runs, settings, start, paired=options.paired)


def played(options: argparse.Namespace) -> str:
    """The network, its reading and the untrained play that it is fitted on: names what is kept."""
    return f"{options.network}{'-paired' * options.paired}-{options.untrained}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--team", type=int, default=8)
    parser.add_argument("--critic-team", type=int, help="size of the recorded team; else --team")
    sources = ("runs", "play", "none", *METHODS)
    parser.add_argument("--source", choices=sources, default="runs")
    parser.add_argument("--paired", action="store_true", help="algorithm.critic.paired")
    parser.add_argument("--network", default="embedded-tiny", help="of the critic")
    parser.add_argument("--untrained", type=int, default=0, help="joint actions, for the fit, too")
    parser.add_argument("--critic-share", type=float, default=0.0)
    parser.add_argument("--critic-epochs", type=int, default=OPTIONS.epochs, help="in a run")
    parser.add_argument("--batch", type=int, default=32, help="joint actions of an iteration")
    parser.add_argument("--played", type=int, default=4096, help="joint actions of each size")
    parser.add_argument("--recorded", type=int, default=4, help="runs that are recorded")
    parser.add_argument("--recorded-steps", type=int, default=1280, help="joint actions of each")
    parser.add_argument("--fit-epochs", type=int, default=8)
    parser.add_argument("--fit-minibatch", type=int, default=64, help="joint actions")
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1280)
    parser.add_argument("--frozen", type=float, default=1.0)
    parser.add_argument("--base", default="embedded-tiny", help="of the fresh teams, or gpt2")
    options = parser.parse_args()
    source = options.critic_team or options.team
    label = f"{options.source}{source}-frozen{options.frozen:g}-{played(options)}"
    label += f"-share{options.critic_share:g}-batch{options.batch}"
    label += f"-{options.base}" * (options.base != "embedded-tiny")
    label += f"-epochs{options.critic_epochs}" * (options.critic_epochs != OPTIONS.epochs)
    critic = given(options, source) if options.source in ("runs", "play") else None
    method = METHODS.get(options.source, "coma")
    path = options.out / "runs.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    done = {(r["label"], r["team"], r["seed"]) for r in map(json.loads, lines)}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        if (label, options.team, seed) not in done:
            every = 64 // options.batch
            settings = settings_of(
                options.team,
                seed,
                options.steps,
                method,
                batch=options.batch,
                every=every,
                critic=options.network,
                epochs=options.critic_epochs,
                actor_epochs=OPTIONS.epochs,
                **BASES.get(options.base, {}),
            )
            if method == "coma":
                reads = {"name": "counterfactual", "paired": options.paired}
                settings["algorithm"]["critic"] = reads
                settings["algorithm"]["advantage"]["critic_share"] = options.critic_share
            base = f"{options.base}:{seed}"
            if options.base == "gpt2":
                folder = options.out / f"base-{options.team}-{seed}"
                base = str(other_base(stakes.Stakes(options.team), folder, seed))
                settings["agents"]["*"]["sampling"]["max_tokens"] = LONGEST
            settings["models"]["*"]["path"] = base
            if critic is not None:
                foreign = source != options.team
                changes = {"from": str(critic), "path": None, "baseline": None}
                settings["critic"] |= {**changes, "frozen": options.frozen, "foreign": foreign}
            made = measured(options.out, settings, options.team, seed, label)
            with path.open("a") as file:
                file.write(json.dumps(made) + "\n")
            print(label, seed, made["to_90"], made["explained_first"], flush=True)


if __name__ == "__main__":
    main()
