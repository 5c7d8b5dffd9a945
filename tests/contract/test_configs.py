"""Every shipped config is one that `colearn compare` takes, without loading a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from offline_configs import offline
from trees import chain

from colearn import registry
from colearn.config import (
    Config,
    bind_agents,
    build_algorithm,
    build_task,
    dump_config,
    is_suite,
    load_config,
    load_suite,
    resolve,
    shipped_configs,
)
from colearn.contract.algorithm import ValueLoss
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.greedy_tree import GreedyTree
from colearn.runs.comparison.plan import config_of, make_plan
from colearn.runs.comparison.suite import plan_suite
from colearn.tasks.metrics import TASK_METRICS
from colearn.training.learners.minibatch import UpdateSchedule

ROOT = Path(__file__).parents[2]
SHIPPED = shipped_configs()
SUITES = [name for name in SHIPPED if is_suite(name)]
CONFIGS = [name for name in SHIPPED if name not in SUITES]
METHODS = {
    *("collm_cc", "collm_dc", "magrpo", "grpo", "ac"),
    *("raw", "parallel", "pipeline", "discussion"),
}
TASKS = ("tldr", "arxiv", "coop_humaneval", "str_build", "house_build")
SINGLE = ("raw", "grpo", "ac")
DEEPSPEED = sorted((ROOT / "configs").rglob("*.json"))


def test_critic_pays_gives_its_algorithms_equal_rates_iterations_and_budgets() -> None:
    config = load_config("critic_pays")
    rows = {label: config_of(config, label) for label in config.compare.algorithms}
    assert list(rows) == ["collm_cc", "collm_dc", "magrpo", "magrpo_tree"]
    assert len(make_plan(config).runs) == 20
    tree = rows.pop("magrpo_tree")
    assert tree.train.episodes * sum(2**turn for turn in range(1, 7)) == 252  # one iteration
    assert (tree.models, tree.train.minibatch) == (rows["magrpo"].models, 96)
    first = rows["collm_cc"]
    for row in rows.values():
        assert (row.models, row.critic, row.agents) == (first.models, first.critic, first.agents)
        assert row.train.environment_steps == 3000
        rollout = build_algorithm(row).checked_parts().rollout
        chains = row.train.episodes * rollout.group_size
        assert chains * build_task(row).horizon == 2 * row.train.minibatch == 192
    critics = [build_algorithm(rows[label]).checked_parts() for label in ("collm_cc", "collm_dc")]
    assert critics[0].advantage == critics[1].advantage == GAE(lam=1.0, normalize=True)
    assert critics[0].value_loss == critics[1].value_loss


@pytest.mark.parametrize("name", SHIPPED)
def test_a_config_opens_with_a_line_that_says_what_it_is(name: str) -> None:
    first = SHIPPED[name].read_text().splitlines()[0]
    assert first.startswith("# ") and len(first) > 20


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_builds_its_plan(name: str) -> None:
    plan = make_plan(offline(name))
    assert {run.config.algorithm.name for run in plan.runs} <= set(registry.names("algorithms"))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", ["paper", "tiny"])
def test_every_task_of_table_1_has_all_nine_methods(size: str, task: str) -> None:
    config = load_config(f"{size}/{task}")
    assert config.task.name == task
    assert set(config.compare.algorithms) == METHODS


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", ["paper", "tiny"])
def test_single_models_are_one_agent_that_plays_one_turn(size: str, task: str) -> None:
    config = offline(f"{size}/{task}")
    for label in SINGLE:
        played = build_task(config_of(config, label))
        assert (len(played.agents), played.horizon) == (1, 1)


@pytest.mark.parametrize("task", TASKS)
def test_the_papers_methods_get_the_papers_number_of_joint_actions(task: str) -> None:
    """Epochs x items x joint actions per item (C.3), without early ends."""
    config = load_config(f"paper/{task}")
    steps = {
        label: config_of(config, label).train.environment_steps for label in ("collm_cc", "magrpo")
    }
    expected = {
        "tldr": (20 * 1000 * 1, 2 * 1000 * 4),
        "arxiv": (20 * 1000 * 1, 2 * 1000 * 4),
        "coop_humaneval": (80 * 66 * 2, 8 * 66 * (4 + 16)),
        "str_build": (120 * 8 * 4, 16 * 8 * (2 + 4 + 8 + 16)),
        "house_build": (120 * 8 * 4, 16 * 8 * (2 + 4 + 8 + 16)),
    }
    assert (steps["collm_cc"], steps["magrpo"]) == expected[task]


@pytest.mark.parametrize("name", CONFIGS)
def test_no_config_clips_advantages_that_are_normalised(name: str) -> None:
    """K numbers of deviation 1 around 0 have no element above the root of K - 1."""
    config = load_config(name)
    for label in config.compare.algorithms or (None,):
        chosen = config if label is None else config_of(config, label)
        parts = build_algorithm(chosen).checked_parts()
        if getattr(parts.advantage, "normalize_std", False):
            clip = getattr(parts.advantage, "clip", None)
            assert clip is None or clip >= (parts.rollout.group_size - 1) ** 0.5, label


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("label", ["collm_cc", "collm_dc", "ac", "magrpo"])
def test_the_papers_methods_update_as_in_the_paper(task: str, label: str) -> None:
    """Eq. 1 to 5 on one pass: whatever the library's recipe adds is off."""
    config = config_of(load_config(f"paper/{task}"), label)
    parts = build_algorithm(config).checked_parts()
    assert (config.train.epochs, config.train.minibatch) == (1, None)
    assert parts.loss == PolicyGradient()
    clip = config.algorithm.settings["advantage"]["clip"]
    if label == "magrpo":
        assert parts.advantage == GroupMean(clip=clip)
    else:
        assert parts.advantage == GAE(clip=clip)
        assert parts.value_loss == ValueLoss()


@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("paper/")])
def test_a_papers_config_says_how_many_passes_it_makes(name: str) -> None:
    assert load_config(name).train.epochs == 1


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_runs_shipped_configs_that_have_all_its_rows(name: str) -> None:
    for size in load_suite(name).sizes:
        suite = load_suite(name, [f"size={size}"])
        for config in suite.configs.values():
            assert set(suite.rows) <= set(load_config(config).compare.algorithms)


def test_the_tiny_suite_can_be_planned() -> None:
    plans = plan_suite(load_suite("table1", ["size=tiny"]))
    assert tuple(plans) == TASKS
    assert sum(len(plan.runs) for plan in plans.values()) == 45


GAMES = ("sudoku", "sokoban", "plan_path")


def test_the_tiny_suite_of_stronger_mas_has_eight_rows_of_five_seeds_on_three_games() -> None:
    plans = plan_suite(load_suite("stronger_mas", ["size=tiny"]))
    assert tuple(plans) == GAMES
    assert [len(plan.runs) for plan in plans.values()] == [8 * 5] * 3


def test_the_suite_of_marshal_has_specialists_and_a_generalist_under_three_algorithms() -> None:
    tiny = plan_suite(load_suite("marshal", ["size=tiny"]))
    assert {name: len(plan.runs) for name, plan in tiny.items()} == {
        "kuhn_poker": 3 * 3,
        "generalist": 3 * 3,
    }
    paper = plan_suite(load_suite("marshal"))
    assert [len(plan.runs) for plan in paper.values()] == [3] * 4


@pytest.mark.parametrize(
    "name", ["tiny/marshal_kuhn_poker", "paper/marshal_kuhn_poker", "paper/marshal_tic_tac_toe"]
)
def test_a_fixed_opponent_takes_the_other_seat_of_every_game(name: str) -> None:
    row = config_of(load_config(name), "fixed_opponent")
    (rival,), seats = row.players, ("player_0", "player_1")
    cast = resolve(row).cast
    taken = [cast.seats(None, k, seats, (rival,), np.random.default_rng(0)) for k in range(2)]
    assert taken == [
        {"player_0": "player_0", "player_1": rival},
        {"player_0": rival, "player_1": "player_1"},
    ]


def test_the_suites_of_both_workflow_papers_have_their_rows_at_the_tiny_size() -> None:
    mhgpo = plan_suite(load_suite("mhgpo", ["size=tiny"]))
    assert {name: len(plan.runs) for name, plan in mhgpo.items()} == {"hotpotqa": 7 * 5}
    unity = plan_suite(load_suite("unitymas_o", ["size=tiny"]))
    counts = {name: len(plan.runs) for name, plan in unity.items()}
    assert counts == {"parallel": 2 * 5, "extract": 2 * 5, "loop": 2 * 5, "code": 2 * 3}
    assert tuple(load_suite("unitymas_o").configs) == tuple(counts)


@pytest.mark.parametrize(
    "name", ["search_mhgpo", "search_parallel", "search_extract", "search_loop", "code_loop"]
)
def test_workflows_of_the_papers_have_a_critic_for_each_model(name: str) -> None:
    config = config_of(offline(f"paper/{name}"), "mappo")
    task = build_task(config)
    bound = bind_agents(config, task.agents)
    assert bound.critic is not None
    critics = {role: bound.critic.value_model(role) for role in task.agents}
    assert critics == {role: bound.agents[role].model for role in task.agents}


def candidates_of(row: Config) -> int:
    """Environment steps of an episode: N T K in a greedy tree, also where the agents act at once
    (Alg. 1, lines 9 to 14); else K for each turn of the task."""
    task, rollout = build_task(row), build_algorithm(row).checked_parts().rollout
    if isinstance(rollout, GreedyTree):
        return len(task.agents) * task.turns * rollout.group_size
    return task.horizon * rollout.group_size


@pytest.mark.parametrize("game", GAMES)
def test_the_budget_of_stronger_mas_is_the_papers_updates(game: str) -> None:
    """150 updates x 128 environments x N T K candidates (C.1)."""
    config = config_of(load_config(f"paper/stronger_mas_{game}"), "at_grpo")
    task, rollout = build_task(config), build_algorithm(config).checked_parts().rollout
    candidates = task.horizon * rollout.group_size
    assert config.train.environment_steps == 150 * config.train.episodes * candidates
    assert (len(task.agents), task.horizon, rollout.group_size) == (2, 2 * 4, 4)


@pytest.mark.parametrize(
    ("name", "label", "updates"),
    [
        *((f"stronger_mas_{game}", "at_grpo", 150) for game in (*GAMES, "code", "math")),
        *((f"stronger_mas_{game}", "mas_grpo", 150) for game in (*GAMES, "code", "math")),
        *((f"marshal_{game}", "marshal", 200) for game in ("kuhn_poker", "generalist")),
        *((f"marshal_{game}", "marshal", 200) for game in ("tic_tac_toe", "mini_hanabi")),
        *(("search_mhgpo", label, 176) for label in ("mhgpo", "mhgpo_rr", "mhgpo_is", "mappo")),
        *((task, "collm_cc", 120 * 8) for task in ("str_build", "house_build")),
        *((task, "magrpo", 16 * 8) for task in ("str_build", "house_build")),
        ("coop_humaneval", "collm_dc", 80 * 66 // 2),
        ("coop_humaneval", "magrpo", 8 * 66),
    ],
)
def test_updates_are_counted_as_the_papers_count_them(name: str, label: str, updates: int) -> None:
    """However early episodes end; and joint actions are enough for them if none does."""
    row = config_of(offline(f"paper/{name}"), label)
    assert row.train.iterations == updates
    task, shape = build_task(row), build_algorithm(row).checked_parts().rollout
    if name.startswith("stronger"):
        most = candidates_of(row)
    elif name == "search_mhgpo":
        most = {"mhgpo": 12.0, "mhgpo_rr": 10.5, "mhgpo_is": 27.0, "mappo": 3.0}[label]
    elif name == "marshal_generalist":
        most = (9 + 3 + 25) / 3
    elif label == "magrpo":
        most = sum(shape.group_size ** (turn + 1) for turn in range(task.horizon))
    else:
        most = task.horizon
    assert row.train.environment_steps >= updates * row.train.episodes * most


@pytest.mark.parametrize("game", [*GAMES, "code", "math"])
def test_an_update_of_stronger_mas_takes_64_of_128_environments_in_every_row(game: str) -> None:
    """PPO's minibatch of 64 (C.1): two steps an update, also where environments end early."""
    config = offline(f"paper/stronger_mas_{game}")
    rows = [config_of(config, label).train for label in config.compare.algorithms]
    long, short = chain([0.0] * 8), chain([0.0])
    for epochs, size, unit in {(row.epochs, row.minibatch, row.minibatch_unit) for row in rows}:
        for ended in ([long] * 128, [short] * 128, [long] * 100 + [short] * 28):
            (cuts,) = UpdateSchedule(epochs, size, unit).minibatches(ended, seed=0, iteration=0)
            assert [len(cut) for cut in cuts] == [64, 64]


@pytest.mark.parametrize(
    ("label", "turns"),
    [
        *(("mhgpo", 12.0), ("mhgpo_rr", 10.5), ("mhgpo_is", 27.0)),
        *(("mappo", 3.0), ("single_grpo", 4.0)),
    ],
)
def test_every_row_of_mhgpo_is_one_epoch_of_hotpotqa(label: str, turns: float) -> None:
    """90,447 questions (App. B), four branches from the fork on: 4 x 3 turns where it is the first
    role, 1 + 4 x 2 and 2 + 4 x 1 where it is a later one."""
    row = config_of(load_config("paper/search_mhgpo"), label)
    assert row.train.environment_steps == round(90_447 * turns)


@pytest.mark.parametrize("label", ["mhgpo", "mhgpo_rr", "mhgpo_is", "mappo"])
def test_every_row_of_mhgpo_has_its_table_2s_clip_and_kl(label: str) -> None:
    loss = build_algorithm(config_of(offline("paper/search_mhgpo"), label)).checked_parts().loss
    assert isinstance(loss, PolicyGradient)
    assert (loss.clip, loss.kl) == (0.2, 0.001)


@pytest.mark.parametrize("game", GAMES)
def test_the_single_agent_rows_of_stronger_mas_are_one_agent_of_four_turns(game: str) -> None:
    config = load_config(f"paper/stronger_mas_{game}")
    for label in ("single", "single_grpo"):
        task = build_task(config_of(config, label))
        assert (task.agents, task.horizon) == (("plan",), 4)


@pytest.mark.parametrize("subject", ["code", "math"])
def test_the_budgets_of_code_and_math_are_the_papers_updates(subject: str) -> None:
    """150 updates x 128 environments x N T K candidates, of one agent, two or an ensemble (C.1)."""
    config = offline(f"paper/stronger_mas_{subject}")
    for label in config.compare.algorithms:
        row = config_of(config, label)
        if row.algorithm.name in ("untrained", "collm_cc", "collm_dc", "mappo"):
            continue
        candidates = candidates_of(row)
        assert row.train.environment_steps == 150 * 128 * candidates, label


@pytest.mark.parametrize("size", ["tiny", "paper"])
def test_debaters_are_reasoners_and_sequential_agents_play_one_turn(size: str) -> None:
    """MAPoRL and MARFT as rows of Stronger-MAS's Table 3."""
    config = offline(f"{size}/stronger_mas_math")
    debate, sequence = (build_task(config_of(config, row)) for row in ("maporl", "marft"))
    assert debate.agents == ("reasoner_1", "reasoner_2") and debate.order == "parallel"
    assert sequence.agents == ("reasoner", "tool")
    assert (sequence.order, sequence.horizon) == ("sequential", 2)


@pytest.mark.parametrize("name", SUITES)
def test_a_suites_metrics_are_its_tasks(name: str) -> None:
    """As the table of metrics has them, which is compared with the tasks elsewhere."""
    suite = load_suite(name, ["size=tiny"])
    for task, config in suite.configs.items():
        known = TASK_METRICS[load_config(config).task.name]
        assert {column.metric for column in suite.columns[task].metrics} <= set(known)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_is_a_run_of_its_own_without_an_entry_of_its_comparison(name: str) -> None:
    """As `colearn train NAME` takes it."""
    assert resolve(offline(name)).algorithm.learns


PAPERS = {"search_mhgpo": "mhgpo", "search": "mappo", "code_loop": "mappo", "marshal": "marshal"}


@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("paper/")])
def test_a_papers_config_alone_is_the_papers_own_method(name: str) -> None:
    """The same run as the entry of that name."""
    config, file = load_config(name), name.removeprefix("paper/")
    own = "at_grpo" if file.startswith("stronger_mas") else "collm_cc"
    own = next((method for start, method in PAPERS.items() if file.startswith(start)), own)
    assert config.algorithm.name == own
    if own != "collm_cc":  # whose entry leaves the library's recipe out
        entry = config_of(config, own).model_dump(exclude={"compare", "train"})
        assert config.model_dump(exclude={"compare", "train"}) == entry


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_comes_back_from_its_dump(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    path = tmp_path / "dumped.yaml"
    path.write_text(dump_config(config))
    loaded = load_config(path)
    # the folder of the file that was read is not part of what was written
    here = {"folders": config.run.folders}
    assert loaded.model_copy(update={"run": loaded.run.model_copy(update=here)}) == config


@pytest.mark.parametrize("path", DEEPSPEED, ids=lambda path: path.name)
def test_a_deepspeed_config_is_a_json_object(path: Path) -> None:
    assert isinstance(json.loads(path.read_text()), dict)
