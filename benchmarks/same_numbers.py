"""Do two versions of the code train the same? Short runs, recorded and compared.

    python benchmarks/same_numbers.py before.json            # record, with one version
    python benchmarks/same_numbers.py after.json             # record, with another
    python benchmarks/same_numbers.py --compare before.json after.json

    python benchmarks/same_numbers.py after.json --only update quickstart/magrpo

The runs: the quickstart's three algorithms, every algorithm of `tests/matrix`, variants of the
update and of the rollout, self-play, workflows, a gateway, and a run that is interrupted and
resumed. A record has each run's metrics, without clocks, and a digest of each final weight; the
weights themselves are beside it (`before.safetensors`), so that a comparison can give the largest
difference. It takes two minutes of processor time.

Numbers depend on the processor, the versions of torch and transformers, and the embedded models in
the cache: compare records of one machine. `--compare` exits with 1 if a number differs by more than
1e-6, or if a metric or a weight is missing on one side.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from colearn.config import load_config
from colearn.programs.workflow import Workflow
from colearn.registry import algorithm_class, names
from colearn.training.interruption import Interrupted
from colearn.training.loop import Experiment

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT), str(ROOT / "tests" / "helpers")]

LIMIT = 1e-6
SELF_PLAY = ("marshal", "mt_grpo", "spiral_rae", "trajectory_grpo")
CRITIC = {"collm_cc", "collm_dc", "coma", "ac", "mappo", "mappo_call"}
Settings = Mapping[str, Any]


@cache
def model(kind: str = "qwen3", merges: bool = False, seed: int | None = None) -> str:
    """The folder of a tiny model with random weights, the same in every process."""
    from tiny import save_model

    folder = tempfile.mkdtemp(prefix="same-numbers-")
    seed = int(merges) if seed is None else seed
    return save_model(Path(folder), kind, merges=merges, seed=seed)


def notes(algorithm: str, /, **changes: Any) -> dict[str, Any]:
    """Two iterations of two epochs of minibatches on the tests' text task; `changes` are merged
    into the sections of this config."""
    teacher = {"teacher": model(seed=2)} if algorithm == "distillation" else {}
    sections: dict[str, Any] = {
        "task": {
            "name": "tiny:Notes",
            "agents": 1 if algorithm in ("ac", "grpo") else 2,
            "horizon": 3,
            "ends": True,
            "items": 3,
        },
        "algorithm": {"name": algorithm, **({} if algorithm in CRITIC else {"rollout": {"k": 2}})},
        "models": {"*": {"path": model(), "learning_rate": 1e-3, **teacher}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "train": {
            "episodes": 3,
            "epochs": 2,
            "minibatch": 2,
            "token_budget": 300,
            "iterations": 2,
            "environment_steps": 1000,
        },
        "evaluation": {"every": 2, "repeats": 1},
        "run": {"device": "cpu"},
    }
    if algorithm in CRITIC:
        reads_ids = algorithm == "mappo"
        path = model() if reads_ids else model("llama", merges=True)
        sections["critic"] = {"path": path, "learning_rate": 1e-3}
    for section, values in changes.items():
        sections[section] = {**sections.get(section, {}), **values}
    return sections


def head(algorithm: str, /, **changes: Any) -> dict[str, Any]:
    """`notes` with the value heads on the actors."""
    sections = notes(algorithm, **changes)
    sections["critic"] = {"share": "actor"}
    return sections


def quickstart(algorithm: str) -> dict[str, Any]:
    config = load_config("quickstart")
    assert config.compare is not None
    changes = dict(config.compare.algorithms[algorithm])
    return {
        "base": "quickstart",
        "algorithm.name": algorithm,
        "train.iterations": 2,
        "evaluation.repeats": 1,
        "run.device": "cpu",
        **changes,
    }


def kuhn(algorithm: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
        "algorithm": {"name": algorithm, "credit": {"name": "payoff"}, **changes.pop("parts", {})},
        "models": {"player": {"path": "embedded-tiny", "learning_rate": 1e-2}},
        "agents": {"*": {"model": "player", "sampling": {"max_tokens": 3}}},
        "train": {"episodes": 8, "environment_steps": 1000, "iterations": 2},
        "evaluation": {"every": 2, "episodes": 6, "exact": True},
        "run": {"device": "cpu"},
        **changes,
    }


def gateway() -> dict[str, Any]:
    programs = "tests.helpers.gateway_programs"
    return {
        "task": {
            "name": "gateway",
            "agents": ["one", "two"],
            "items": f"{programs}:items",
            "play": f"{programs}:relay",
        },
        "algorithm": {"name": "magrpo", "rollout": {"name": "parallel", "k": 2}},
        "models": {"*": {"path": model(), "learning_rate": 1e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 3}}},
        "train": {"episodes": 2, "environment_steps": 1000, "iterations": 2},
        "evaluation": {"episodes": 2},
        "run": {"device": "cpu"},
    }


def workflow(algorithm: str) -> dict[str, Any]:
    critic = {"critic": {"path": model(), "learning_rate": 1e-2}} if "mappo" in algorithm else {}
    return {
        "task": {"name": "same_numbers:Letters"},
        "algorithm": {"name": algorithm},
        "models": {"one": {"path": model(), "learning_rate": 1e-2}},
        "agents": {"*": {"model": "one", "sampling": {"max_tokens": 4}}},
        "train": {"episodes": 2, "environment_steps": 1000, "iterations": 2},
        "run": {"device": "cpu"},
        **critic,
    }


class Letters(Workflow[str]):
    """Three roles in a row; each reads the previous one's text."""

    agents = ("rewriter", "reranker", "answerer")
    horizon = 3

    def items(self, split: str) -> list[str]:
        return ["ash", "birch"]

    async def run(self, team: Any, item: str) -> None:
        text = item
        for role in self.agents:
            text = await team.ask(role, f"{role} {text}")
            team.reward(0.01 * (sum(text.encode()) % 7))


FROZEN = {"frozen_targets": True}
OPTIMISTIC = {"expectile": 0.9, "rescale": True}


def lora() -> dict[str, Any]:
    return {"*": {"path": model(), "learning_rate": 1e-2, "lora": {"rank": 2}}}


def cases() -> Iterator[tuple[str, Callable[[], Settings]]]:
    """Every run's name, and its settings."""

    def named(algorithm: str, **parts: Any) -> dict[str, Any]:
        k = {} if algorithm in CRITIC else {"rollout": {"k": 2}}
        return {"algorithm": {"name": algorithm, **k, **parts}}

    for name in ("collm_cc", "collm_dc", "magrpo"):
        yield f"quickstart/{name}", lambda name=name: quickstart(name)
    for name in sorted(names("algorithms")):
        if algorithm_class(name).learns and name not in SELF_PLAY:
            yield f"matrix/{name}", lambda name=name: notes(name)
    for name in SELF_PLAY:
        yield f"self_play/{name}", lambda name=name: kuhn(name)
    league = {"cast": {"name": "league", "pool": 2, "every": 1}}
    yield "self_play/league", lambda: kuhn("marshal", **league)
    for name in ("mhgpo", "mappo_call"):
        yield f"workflow/{name}", lambda name=name: workflow(name)
    yield "gateway/magrpo", gateway
    yield "resumed/collm_cc", lambda: notes("collm_cc", models=lora())
    cc, dc, group = "collm_cc", "collm_dc", "magrpo"
    clip = {"clip": 0.2}
    q = {"critic": {"value": "q"}, "advantage": {"name": "q_value"}}
    updates: dict[str, Callable[[], Settings]] = {
        "frozen": lambda: notes(cc, **named(cc, value_loss=FROZEN)),
        "frozen and clip": lambda: notes(cc, **named(cc, value_loss={**FROZEN, **clip})),
        "value clip": lambda: notes(dc, **named(dc, value_loss=clip)),
        "gae": lambda: notes(cc, **named(cc, advantage={"lam": 0.95, "normalize": True})),
        "optimism": lambda: notes(cc, **named(cc, value_loss=OPTIMISTIC)),
        "action values": lambda: notes(cc, **named(cc, **q)),
        "head": lambda: head(dc),
        "head, frozen": lambda: head(dc, **named(dc, value_loss={**FROZEN, **clip})),
        "head, actions": lambda: head(dc, **named(dc, **q)),
        "one base": lambda: notes(
            cc, models=lora(), critic={"path": model(), "lora": {"rank": 2}, "learning_rate": 1e-2}
        ),
        "critic first": lambda: notes(cc, critic={"warmup_iterations": 1}),
        "reference": lambda: notes(
            group, **named(group, loss={"kl": 0.1, "entropy": 0.01, "reference_update_every": 1})
        ),
        "reference, head": lambda: head(dc, models=lora(), **named(dc, loss={"kl": 0.1})),
        "target KL": lambda: notes(group, train={"epochs": 4, "target_kl": 1e-4}),
        "own epochs": lambda: notes(
            cc, critic={"epochs": 3, "minibatch": 3}, **named(cc, value_loss=FROZEN)
        ),
        "fixed agent": lambda: notes(
            cc, models={"ada": {"path": model()}, "ben": {"path": model(), "trained": False}}
        ),
        "token ratio": lambda: notes(
            dc, **named(dc, loss={"ratio": "token", "clip": 0.2, "reduction": "token_mean"})
        ),
    }
    for name, settings in updates.items():
        yield f"update/{name}", settings
    rollouts: dict[str, Callable[[], Settings]] = {
        "free order": lambda: notes(group, run={"order": "free"}),
        "in turn": lambda: notes(cc, task={"sequential": True, "agents": 3, "ends": False}),
        "window": lambda: notes(cc, agents={"ada": {"window": 40, "sampling": {"max_tokens": 6}}}),
        "two tokenizers": lambda: notes(
            cc, models={"ada": {"path": model()}, "ben": {"path": model("llama", merges=True)}}
        ),
        "copy": lambda: notes(group, run={"generator": {"name": "transformers", "copy": True}}),
        "stale": lambda: notes(
            group,
            **named(group, loss={"importance_cap": 2.0}),
            train={"staleness": 1, "iterations": 3},
            run={"generator": {"name": "transformers", "copy": True}},
        ),
        "cross": lambda: notes("marloo", **named("marloo", rollout={"name": "cross", "k": 2})),
    }
    for name, settings in rollouts.items():
        yield f"rollout/{name}", settings


def trained(name: str, settings: Settings, folder: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """A run's metrics by "place in the file/name", and its final weights."""
    settings = dict(settings)
    base = settings.pop("base", None)
    config = load_config(settings) if base is None else load_config(base, settings)

    def interrupt(progress: Any, metrics: Mapping[str, float]) -> None:
        if progress.iteration == 1:
            raise Interrupted(signal.SIGINT)

    if name.startswith("resumed/"):
        try:
            Experiment(config, folder).run(interrupt)
        except Interrupted:
            Experiment(config, folder, resume=True).run()
    else:
        Experiment(config, folder).run()
    metrics: dict[str, float] = {}
    for number, line in enumerate((folder / "metrics.jsonl").read_text().splitlines()):
        for metric, value in json.loads(line)["metrics"].items():
            if "seconds" not in metric:
                metrics[f"{number}/{metric}"] = math.nan if value is None else value
    steps = (folder / "checkpoints").glob("step-*")
    newest = max(steps, key=lambda path: int(path.name.removeprefix("step-")))
    weights = {}
    for path in sorted(newest.glob("*/*.safetensors")):
        for tensor, weight in load_file(path).items():
            if not path.stem.startswith("optimizer"):
                weights[f"{path.parent.name}/{tensor}"] = weight
    return metrics, weights


def record(out: Path, only: list[str]) -> None:
    """Run the cases and write their numbers."""
    records: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in cases():
            if only and not any(fnmatch(name, f"{one}*") for one in only):
                continue
            started = time.perf_counter()
            metrics, final = trained(name, settings(), Path(folder) / name.replace("/", "-"))
            digests = {
                tensor: hashlib.sha256(weight.contiguous().numpy().tobytes()).hexdigest()
                for tensor, weight in final.items()
            }
            records[name] = {"metrics": metrics, "weights": digests}
            weights |= {f"{name}:{tensor}": weight for tensor, weight in final.items()}
            seconds = time.perf_counter() - started
            print(
                f"{name:30} {len(metrics):4} metrics {len(final):4} weights {seconds:6.1f} s",
                flush=True,
            )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(records, indent=1))
    save_file(weights, out.with_suffix(".safetensors"))


def compare(one: Path, other: Path) -> bool:
    """Print the largest difference of each run; whether none exceeds the limit."""
    before, after = (json.loads(path.read_text()) for path in (one, other))
    tensors = [load_file(path.with_suffix(".safetensors")) for path in (one, other)]
    same = True
    for name in sorted(before.keys() & after.keys()):
        worst, where, missing = 0.0, "", set[str]()
        for kind in ("metrics", "weights"):
            left, right = before[name][kind], after[name][kind]
            missing |= left.keys() ^ right.keys()
            for key in left.keys() & right.keys():
                if left[key] == right[key] or (left[key] != left[key] and right[key] != right[key]):
                    continue
                if kind == "metrics":
                    gap = abs(left[key] - right[key])
                else:
                    a, b = (of[f"{name}:{key}"].double() for of in tensors)
                    gap = (a - b).abs().max().item() if a.shape == b.shape else math.inf
                if not gap <= worst:
                    worst, where = gap, key
        close = worst <= LIMIT and not missing
        same &= close
        verdict = "equal" if not worst else f"{worst:.1e} at {where}"
        if missing:
            verdict += f"; on one side only: {', '.join(sorted(missing)[:4])}"
        print(f"{'' if close else 'DIFFERS '}{name}: {verdict}")
    print("compared", len(before.keys() & after.keys()), "of", len(before), "and", len(after))
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the runs' names")
    parser.add_argument("--compare", type=Path, nargs=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.compare:
        sys.exit(0 if compare(*arguments.compare) else 1)
    if arguments.out is None:
        parser.error("name the file to write, or two files with --compare")
    record(arguments.out, arguments.only)


if __name__ == "__main__":
    main()
