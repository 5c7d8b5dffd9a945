"""Mutation score of the core: the share of mutants that the fast tests detect.

    pip install "mutmut>=3.8.1"
    python benchmarks/mutations.py [--share 0.2] [--seed 0] [advantage loss learn ...]

mutmut makes the mutants of a package and runs on each the tests that reach its function, of those
named in PACKAGES. What an error says, and what only types need, is not mutated. With `--share` a
random part of each package's mutants is tried, and the score is an estimate with its interval.
Verdicts are kept under mutants/, so that this command may be stopped and said again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy import stats

ROOT = Path(__file__).parents[1]
PACKAGES: dict[str, tuple[str, str]] = {
    "advantage": (
        "advantage/*",
        "unit/advantage/test_advantages unit/advantage/test_at_grpo unit/credit/test_credit "
        "unit/advantage/test_mhgpo unit/algorithms/test_recipe "
        "unit/advantage/test_self_play_advantages unit/advantage/test_token_gae "
        "unit/critic/test_counterfactual unit/test_unscored",
    ),
    "loss": ("loss/*", "unit/loss/test_losses unit/algorithms/test_recipe"),
    "critic": (
        "critic/*",
        "unit/critic/test_critics unit/advantage/test_token_gae integration/test_updater "
        "integration/test_workflow_training",
    ),
    "learn": (
        "learn/*",
        "unit/algorithms/test_recipe unit/learn/test_row_batches unit/learn/test_ridge "
        "unit/learn/test_grad_signal unit/estimate/test_estimate unit/sft/test_dialogues "
        "integration/test_fresh_prompts integration/test_gradients integration/test_logprobs "
        "integration/test_references integration/test_updater "
        "integration/test_workflow_training",
    ),
    "rollout": (
        "rollout/*",
        "unit/advantage/test_at_grpo unit/rollout/test_draws unit/rollout/test_grow "
        "unit/advantage/test_mhgpo unit/rollout/test_rollout_shapes contract/test_check_task "
        "unit/rollout/test_barrier unit/rollout/test_calling_thread "
        "unit/rollout/test_cut_branches unit/rollout/test_greedy_tree "
        "unit/rollout/test_huge_numbers unit/rollout/test_turn_steps "
        "unit/tasks/test_misbehaving_tasks integration/test_free_order integration/test_overflow",
    ),
    "generate": (
        "generate/*",
        "unit/generate/test_device_transfer unit/generate/test_inverse "
        "unit/generate/test_prefix_cache unit/generate/test_sampling_cut "
        "unit/generate/test_served_adapters unit/generate/test_server_link "
        "unit/generate/test_slabs unit/generate/test_step_graphs unit/generate/test_vllm_executor "
        "unit/generate/test_vllm_worker unit/generate/test_whole_action "
        "integration/test_continuous_batching integration/test_sampling",
    ),
    "statistics": ("statistics/*", "unit/test_statistics"),
    "update": (
        "experiment/update/*",
        "unit/algorithms/test_recipe unit/experiment/test_similarity "
        "unit/experiment/test_value_scale unit/test_item_means unit/test_unscored "
        "integration/test_gradients integration/test_references integration/test_update_schedules "
        "integration/test_updater integration/test_values integration/test_who_learns "
        "integration/test_workflow_training",
    ),
}
"""What is mutated, below colearn/, and the files of tests by which it is judged."""
MORE = {
    "critic": ["-k", "not workflow_training or token_values"],
    "learn": ["-k", "not (references or workflow_training) or shares_no_weight or token_values"],
    "rollout": ["-k", "not check_task or broken"],
    "statistics": ["-k", "not seldom and not covers_the_mean"],
    "update": ["-k", "not (references or workflow_training) or shares_no_weight or token_values"],
}
"""Arguments of pytest: whole runs, every registered task, and what draws thousands of samples would
take most of the time."""
LEFT_OUT = ["colearn/learn/deepspeed*"]
KILLED, SURVIVED, UNREACHED = {1, 3}, {0}, {5, 33}
"""Exit codes that mutmut keeps; all others are runs that did not end, and count as noticed."""

Verdicts = Mapping[str, int | None]
"""Of each mutant the exit code of its tests, None where it was not tried."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=[*PACKAGES], help=", ".join(PACKAGES))
    parser.add_argument("--share", type=float, default=1.0, help="of each package's mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    chosen = parser.parse_args()
    head = ("package", "mutants", "tried", "noticed", "of these never ended", "missed", "score")
    rows, missed = ["|".join(["", *head, ""]), "|---" * len(head) + "|"], []
    for package in chosen.packages:
        place = prepare(package)
        if chosen.share >= 1.0:
            mutmut(place)  # those without a verdict
        elif not (place / "mutants" / "mutmut-stats.json").is_file():
            make(place)
        names = draw(verdicts(place), chosen.share, random.Random(f"{chosen.seed} {package}"))
        todo = [name for name in names if verdicts(place)[name] is None]
        if todo:
            mutmut(place, *todo)
        known = verdicts(place)
        rows.append(row(package, len(known), [known[name] for name in names]))
        missed += [name for name in names if known[name] in SURVIVED | UNREACHED]
    print("\n".join([*rows, "", *missed]))


def prepare(package: str) -> Path:
    """A folder with links to the repository, in which mutmut works on this package alone."""
    place = ROOT / "mutants" / package
    place.mkdir(parents=True, exist_ok=True)
    for name in ("algorithms", "colearn", "configs", "tasks", "tests"):
        if not (place / name).is_symlink():
            (place / name).symlink_to(ROOT / name)
    code, tests = PACKAGES[package]
    settings = {
        "source_paths": ["colearn"],
        "only_mutate": [f"colearn/{path}" for path in code.split()],
        "do_not_mutate": LEFT_OUT,
        "do_not_mutate_patterns": [r"^\s*(raise|assert)\b"],
        "also_copy": [
            *("algorithms", "colearn/algorithms", "colearn/configs", "colearn/tasks"),
            *("configs", "tasks"),
        ],
        "timeout_constant": 2.0,
        "timeout_multiplier": 5.0,
        "use_git_change_detection": False,
        "pytest_add_cli_args": ["-p", "no:cacheprovider", *MORE.get(package, [])],
        "pytest_add_cli_args_test_selection": [f"tests/{path}.py" for path in tests.split()],
    }
    # as JSON writes them, TOML reads lists, numbers and texts
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (place / "pyproject.toml").write_text("\n".join([text, "[tool.mutmut]", *lines, ""]))
    return place


def make(place: Path) -> None:
    """Make the mutants and note which tests reach them: told to try none of them, mutmut stops
    there, which it takes for a mistake."""
    told = ["mutmut", "run", "--max-children", "1", "none"]
    made = subprocess.run(told, check=False, cwd=place, capture_output=True, text=True)
    if "nothing matches" not in made.stderr:
        raise SystemExit(f"{place.name}: no mutants\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


def mutmut(place: Path, *names: str) -> None:
    subprocess.run(["mutmut", "run", "--max-children", "1", *names], check=True, cwd=place)


def verdicts(place: Path) -> Verdicts:
    exit_codes: dict[str, int | None] = {}
    for path in sorted((place / "mutants").rglob("*.py.meta")):
        exit_codes |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return exit_codes


def draw(mutants: Verdicts, share: float, rng: random.Random) -> list[str]:
    return sorted(rng.sample(sorted(mutants), min(len(mutants), math.ceil(share * len(mutants)))))


def row(package: str, mutants: int, codes: Sequence[int | None]) -> str:
    kinds = Counter(
        "missed" if code in SURVIVED | UNREACHED else "killed" if code in KILLED else "endless"
        for code in codes
    )
    noticed = len(codes) - kinds["missed"]
    score = f"{100 * noticed / len(codes):.1f}%"
    if len(codes) < mutants:
        bounds = stats.binomtest(noticed, len(codes)).proportion_ci(0.95, method="wilson")
        score += f" [{100 * bounds.low:.1f}, {100 * bounds.high:.1f}]"
    cells = (package, mutants, len(codes), noticed, kinds["endless"], kinds["missed"], score)
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
