"""Joint actions per second and peak memory of colearn and of CoMLRL, interleaved in one run.

    pip install --no-deps comlrl==1.4.3 && pip install openai
    python benchmarks/vs_comlrl.py                # the table, with one thread and with two

Both train the same fresh Qwen3 (23 M parameters, fp32) on the same task: two agents, two turns,
observations of 100 and 36 words, 64 new tokens for every action. Every word is one token in both
directions, and the end token's number lies just outside the model's output layer, so that neither
system can sample it: all lengths are equal on both sides without a setting of either. At the second
turn colearn's agent has its whole history (100 + 64 + 36 tokens); so has the peer's, whose prompt
is that history as text.

Each line of the table is a process of its own, for its own peak memory. All stay alive and are told
in turn to train for some seconds; a ratio is the median over rounds of neighbouring measurements.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from colearn.contract import BatchEngine, DecPOMDP, TokenAnswer, TokenRequest
from colearn.contract.types import Outcome

VOCABULARY = 8192
AGENTS = ("left", "right")
FIRST_WORDS, NEXT_WORDS, NEW_TOKENS, TURNS, SAMPLES = 100, 36, 64, 2, 4
PEERS = {"magrpo": "MAGRPO", "collm_cc": "MAAC", "collm_dc": "IAC"}
EPISODES = {"magrpo": (1, 4), "collm_cc": (1, 8), "collm_dc": (1, 8)}
TASK = "shared_words"


def words(item: int, agent: str, turn: int, count: int) -> str:
    """An observation: `count` words, the same in every process."""
    rng = np.random.default_rng([item, AGENTS.index(agent), turn])
    return " ".join(f"w{number}" for number in rng.integers(0, VOCABULARY - 1, count))


def reward_of(texts: Sequence[str]) -> float:
    """The share of odd words, less one."""
    said = [word for text in texts for word in text.split()]
    return sum(word[-1] in "13579" for word in said) / max(1, len(said)) - 1.0


@dataclass(frozen=True)
class State:
    item: int
    turn: int = 0


class SharedWords(DecPOMDP[int, State]):
    """Words in, words out, a reward that costs nothing: all time is the trainer's own."""

    agents = AGENTS
    horizon = TURNS
    reward_range = (-1.0, 0.0)

    def items(self, split: str) -> Sequence[int]:
        return range(64) if split == "train" else range(64, 72)

    def reset(self, item: int, rng: np.random.Generator) -> State:
        return State(item)

    def observe(self, state: State, agent: str) -> str:
        return words(state.item, agent, state.turn, NEXT_WORDS if state.turn else FIRST_WORDS)

    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        reward = reward_of([actions[agent] for agent in AGENTS])
        return Outcome(state=State(state.item, state.turn + 1), reward=reward)

    def metrics(self, state: State) -> Mapping[str, float]:
        return {"answered": float(state.turn)}


def word_tokenizer(size: int) -> Any:
    """`size` words, each of them one token in both directions; the end token lies outside."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {f"w{number}": number for number in range(size - 1)}
    vocabulary["<unk>"] = size - 1
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<end>",
        pad_token="<pad>",
        chat_template="{% for m in messages %} {{ m['content'] }} {% endfor %}",
        model_max_length=4096,
    )
    assert tokenizer.eos_token_id >= size
    return tokenizer


def make_folders(folder: Path, layers: int = 6) -> None:
    """The model with its tokenizer, and the entry point by which colearn finds the task."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=512,
            intermediate_size=1536,
            num_hidden_layers=layers,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=64,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )
    )
    model.generation_config.do_sample = True
    model.generation_config.top_k = 0  # the library's default cuts at 50
    model.save_pretrained(folder / "model")
    word_tokenizer(VOCABULARY).save_pretrained(folder / "model")
    entry = folder / "entry" / "vs_comlrl_task-0.dist-info"
    entry.mkdir(parents=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: vs-comlrl-task\nVersion: 0\n")
    (entry / "entry_points.txt").write_text(f"[colearn.tasks]\n{TASK} = vs_comlrl:SharedWords\n")


def peak_memory() -> int:
    """Bytes, of this program alone: `ru_maxrss` would begin at the parent's."""
    status = Path("/proc/self/status").read_text()
    peak_line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak_line.split()[1]) * 1024


class Turns:
    """A worker's side of the pipe: wait to be told, train for some seconds, answer."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # the libraries may print what they like

    def wait(self) -> float | None:
        line = sys.stdin.readline()
        self.cpu = time.process_time()
        return float(line) if line.strip() else None

    def answer(self, actions: int, seconds: float) -> None:
        cpu = time.process_time() - self.cpu
        measurement = {"actions": actions, "seconds": seconds, "cpu": cpu, "peak": peak_memory()}
        self.out.write(json.dumps(measurement) + "\n")
        self.out.flush()


def run_colearn(folder: Path, algorithm: str, episodes: int, token_budget: int | None) -> None:
    """An ordinary experiment that does not end by itself, held between iterations."""
    from colearn.config import Config
    from colearn.training.loop import Experiment

    model = {"path": str(folder / "model")}
    train = {"environment_steps": 10**9, "episodes": episodes, "token_budget": token_budget}
    settings = {
        "task": {"name": TASK},
        "algorithm": {"name": algorithm},
        "models": {"*": model},
        "agents": {"*": {"sampling": {"max_tokens": NEW_TOKENS}}},
        "critic": None if algorithm == "magrpo" else {**model, "baseline": "none"},
        "train": train,
        "evaluation": {"every": 10**9, "episodes": 1, "transcripts": 0},
        "run": {"device": "cpu"},
    }
    turns = Turns()
    actions, seconds, budget = 0, 0.0, 0.0

    def between(progress: Any, metrics: Mapping[str, float]) -> None:
        nonlocal actions, seconds, budget
        spent = progress.wall_seconds - seconds
        if spent < budget:
            return
        if budget:
            turns.answer(progress.environment_steps - actions, spent)
        told = turns.wait()
        if told is None:
            sys.exit(0)
        actions, seconds, budget = progress.environment_steps, progress.wall_seconds, told

    with tempfile.TemporaryDirectory() as scratch:
        Experiment(Config.model_validate(settings), Path(scratch) / "run").run(between)


class PeerTask:
    """A task as the peer's functions. A prompt is the whole history as text: `ask` writes an
    observation, and `end` follows an answer."""

    def __init__(self, task: Any, items: Any, ask: Callable[[str], str], end: str = " ") -> None:
        self.task, self.items, self.ask, self.end = task, items, ask, end

    def begin(self, number: str) -> None:
        self.state = self.task.reset(self.items[int(number)], np.random.default_rng(0))

    def asked(self, agent: str) -> str:
        return self.ask(self.task.observe(self.state, agent))

    def step(self, texts: Sequence[str]) -> Any:
        actions = dict(zip(self.task.agents, texts, strict=True))
        return self.task.step(self.state, actions, np.random.default_rng(0))

    def formatter(self, agent: str) -> Callable[..., str]:
        def prompt(item: Mapping[str, Any], external_prompts: str | None = None) -> str:
            if external_prompts is None:
                self.begin(item["prompt"])
            return external_prompts or self.asked(agent)

        return prompt

    def transition(self, prompt: str, **histories: Any) -> list[str]:
        before, said = (histories[f"{kind}_history_per_agent"] for kind in ("prompt", "response"))
        self.begin(prompt)
        for joint in zip(*said, strict=True):
            self.state = self.step(joint).state
        lines = zip(before, said, map(self.asked, self.task.agents), strict=True)
        return [f"{old[-1]}{own[-1]}{self.end}{new}" for old, own, new in lines]

    def reward(self, *texts: Sequence[str], **_: Any) -> list[float]:
        return [float(self.step(joint).reward) for joint in zip(*texts, strict=True)]

    def trainer(self, algorithm: str, path: str, tokenizer: Any, **settings: Any) -> Any:
        """The peer's trainer, which forgets its place in the data at the end of `train`."""
        from comlrl.trainers import actor_critic, reinforce

        grouped, agents = algorithm == "magrpo", self.task.agents
        settings |= {"num_agents": len(agents), "num_train_epochs": 1, "top_p": 1.0}
        settings |= {"temperature": 1.0, "early_termination_threshold": None}
        package = reinforce if grouped else actor_critic
        name, own = PEERS[algorithm], {"critic_model": path}
        trainer = getattr(package, f"{name}Trainer")(
            agent_model=path,
            tokenizer=tokenizer,
            reward_func=self.reward,
            formatters=[self.formatter(agent) for agent in agents],
            external_transition=self.transition,
            train_dataset=[{"prompt": str(n)} for n in range(len(self.items))],
            args=getattr(package, f"{name}Config")(**settings),
            **({"num_agents": len(agents)} if grouped else own),
        )
        trainer.verbose = False
        return trainer


def run_peer(folder: Path, algorithm: str, items: int) -> None:
    """The peer's trainer over and over on items of its own data set."""
    import warnings

    warnings.filterwarnings("ignore")
    from transformers import AutoTokenizer

    path = str(folder / "model")
    settings = {"num_turns": TURNS, "max_new_tokens": NEW_TOKENS, "top_k": None}
    if algorithm == "magrpo":
        settings["num_generations"] = SAMPLES
    task = PeerTask(SharedWords(), range(items), "{} ".format)
    trainer = task.trainer(algorithm, path, AutoTokenizer.from_pretrained(path), **settings)
    turns = Turns()
    while (budget := turns.wait()) is not None:
        before, started = trainer.env_step, time.perf_counter()
        while time.perf_counter() - started < budget:
            trainer.train()
        turns.answer(trainer.env_step - before, time.perf_counter() - started)


class Reprefill(BatchEngine):
    """The transformers engine without its caches: every call opens all histories anew, or prefills
    a history once for each of its actions."""

    def __init__(self, inner: Any, *, forget: bool) -> None:
        self.inner, self.forget = inner, forget

    def generate(self, requests: Sequence[TokenRequest]) -> list[list[TokenAnswer]]:
        if self.forget:
            return self.inner.generate([replace(r, continues=None) for r in requests])
        single = [replace(r, seeds=(seed,)) for r in requests for seed in r.seeds]
        flat = iter(self.inner.generate(single))
        return [[next(flat)[0] for _ in r.seeds] for r in requests]

    def sync(self) -> None:
        self.inner.sync()


class Worker:
    """The parent's side: a process that trains when told to."""

    def __init__(
        self, folder: Path, threads: int, arguments: Sequence[str], script: str = __file__
    ) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(folder / "entry"), os.environ.get("PYTHONPATH")])
            ),
            "OMP_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error",
            "WANDB_MODE": "disabled",
            "MALLOC_ARENA_MAX": "1",  # as colearn's commands set it; the peer has one thread
        }
        self.process = subprocess.Popen(
            [sys.executable, script, "--worker", str(folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("VERBOSE") else subprocess.DEVNULL,
            env=environment,
            text=True,
        )

    def tell(self, seconds: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} stopped")
        answer: dict[str, float] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(folder: Path, algorithm: str, threads: int, options: Any) -> Iterator[dict[str, Any]]:
    """One table's lines: the peer, colearn with each batch size."""
    budget = [] if options.token_budget is None else [options.token_budget]
    counts = options.episodes or EPISODES[algorithm]
    names = [("comlrl", "full"), *(("colearn", " ".join(map(str, [n, *budget]))) for n in counts)]
    items = 1 if algorithm == "magrpo" else options.items
    workers = {name: Worker(folder, threads, [*name, algorithm, str(items)]) for name in names}
    rates: dict[tuple[str, str], list[float]] = {name: [] for name in names}
    works: dict[tuple[str, str], list[float]] = {name: [] for name in names}
    peaks: dict[tuple[str, str], float] = {}
    try:
        for round_ in range(options.rounds + 1):
            seconds = options.seconds if round_ else 0.001
            for name, worker in workers.items():
                worker.tell(seconds)
                answer = worker.answer()
                peaks[name] = answer["peak"]
                if round_:  # round 0 warms up
                    rates[name].append(answer["actions"] / answer["seconds"])
                    works[name].append(answer["actions"] / answer["cpu"])
    finally:
        for worker in workers.values():
            worker.close()
    for name in names:
        ratios = [a / b for a, b in zip(rates[name], rates[names[0]], strict=True)]
        shares = [a / b for a, b in zip(works[name], works[names[0]], strict=True)]
        label = f"CoMLRL {PEERS[algorithm]}"
        if name[0] == "colearn":
            label = f"colearn {algorithm}, episodes={name[1]}"
        yield {
            "cpu_ratios": shares,
            "line": f"| {threads} | {label} | {statistics.median(rates[name]):.3f} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) "
            f"| {statistics.median(works[name]):.3f} | {statistics.median(shares):.2f} "
            f"| {peaks[name] / 2**30:.2f} | {peaks[name] / peaks[names[0]]:.2f} |",
        }


def main() -> int:
    if "--worker" in sys.argv:
        folder, system, variant, algorithm, items = sys.argv[2:]
        if system == "colearn":
            count, budget, *_ = (*map(int, variant.split()), None)
            run_colearn(Path(folder), algorithm, count, budget)
        else:
            run_peer(Path(folder), algorithm, int(items))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithms", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement, at least")
    parser.add_argument("--episodes", nargs="+", type=int, help="colearn's batch sizes")
    parser.add_argument(
        "--items", type=int, default=4, help="of the peer's AC unit; 4 fill its rollout buffer once"
    )
    parser.add_argument("--token-budget", type=int, help="colearn's train.token_budget")
    options = parser.parse_args()
    print(
        "| threads | system | joint actions/s | ratio (range) | joint actions/CPU s | CPU ratio "
        "| peak GiB | memory ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_folders(folder)
        for threads in options.threads:
            for algorithm in options.algorithms:
                for row in compare(folder, algorithm, threads, options):
                    print(row["line"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
