"""Bytes counted by hand: weights, gradients, Adam, caches, ZeRO; and the ledger under them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from estimated import *  # noqa: F403 - fixtures
from tiny import Notes, register

from colearn.config import build_task
from colearn.contract import Sampling
from colearn.contract.rows import Piece, Row
from colearn.errors import ConfigError
from colearn.estimate import Estimate
from colearn.estimate.episodes import Rehearsed, rehearse
from colearn.estimate.learning import cut_rows, padded
from colearn.estimate.ledger import rehearsal
from colearn.estimate.machine import read_machine
from colearn.estimate.phases import Passes
from colearn.estimate.script import Script, probed_items, read_script
from colearn.registry import task_class
from colearn.rollout.agents import AgentSpec
from colearn.rollout.shapes import Chain, Cross, KaryTree, Parallel
from colearn.tasks.wrappers import Discussion, Pipeline
from colearn.training.learners.kinds import Local
from colearn.training.learners.zero_memory import kept_by_zero


def test_a_ledger_counts_what_is_alive_at_most() -> None:
    with rehearsal() as ledger:
        kept = torch.zeros(10, 10)  # 400 bytes
        (kept + 1).sum()  # 400 more, and 4 for the sum, gone afterwards
        assert (ledger.live, ledger.peak) == (400, 804)


def test_a_view_costs_nothing() -> None:
    with rehearsal() as ledger:
        kept = torch.zeros(10, 10)
        view = kept[2:].transpose(0, 1)
        assert (ledger.live, view.shape) == (400, (10, 8))


def test_a_local_learner_keeps_sixteen_bytes_for_each_trained_weight() -> None:
    kept = Local().kept(1000, 300, None, processes=4)
    # 4 the weight (and 300 bytes of frozen ones), 4 its gradient, 8 both moments
    assert (kept.weights, kept.gradients, kept.adam, kept.master) == (4300, 4000, 8000, 0)


@pytest.mark.parametrize(
    ("stage", "weights", "gradients", "adam", "master", "step"),
    [
        (0, 4000, 4000, 8000, 0, 8000),
        # whole gradients and two buckets of 50, a quarter of the moments and of the weights
        (1, 4000, 4400, 2000, 1000, 2000),
        # a quarter of the gradients and two buckets of 50, a quarter of the moments, and a copy
        # of the quarter that this process steps
        (2, 4000, 1400, 2000, 1000, 2000),
        # whole weights, as a rollout needs them, and this process's quarter of them
        (3, 5000, 1400, 2000, 1000, 3000),
    ],
)
def test_zero_divides_among_four_processes(
    stage: int, weights: int, gradients: int, adam: int, master: int, step: int
) -> None:
    kept = kept_by_zero(1000, 0, {"stage": stage, "reduce_bucket_size": 50}, processes=4)
    assert (kept.weights, kept.gradients, kept.adam, kept.master, kept.step) == (
        weights,
        gradients,
        adam,
        master,
        step,
    )


LIVE = {"stage": 3, "stage3_max_live_parameters": 100, "stage3_prefetch_bucket_size": 20}


def test_stage_3_divides_weights_within_their_update_only() -> None:
    kept = kept_by_zero(1000, 300, LIVE, processes=4)
    # this process's quarter, 120 gathered elements, and 300 frozen bytes
    assert (kept.weights, kept.updating, kept.offloaded) == (5300, 1000 + 480 + 300, 0)
    assert kept_by_zero(1000, 300, LIVE, processes=4, whole=True).updating is None


def test_what_is_offloaded_is_counted_in_the_cpus_memory() -> None:
    cpu = {"device": "cpu"}
    zero = LIVE | {"offload_optimizer": cpu, "offload_param": cpu, "reduce_bucket_size": 50}
    kept = kept_by_zero(1000, 0, zero, processes=4)
    # whole weights and two buckets on the device; quarters of both moments, master and gradients
    # on the CPU, and of the weights
    assert (kept.weights, kept.gradients, kept.adam, kept.master, kept.step) == (4000, 400, 0, 0, 0)
    assert (kept.updating, kept.offloaded) == (480, 5 * 1000)


SHARED = ("models.*.lora={rank: 2}", "critic.lora={rank: 2}")


def weights_of_tiny_llama() -> tuple[int, int]:
    """All parameters of tests/helpers/tiny.py's model, and those of its LM head."""
    words, width, inner, layers = 266, 32, 48, 2
    attention = width * 32 + 2 * width * 16 + 32 * width  # q of 4 x 8, k and v of 2 x 8, o
    mlp = 3 * width * inner
    norms = 2 * width
    total = 2 * words * width + layers * (attention + mlp + norms) + width
    return total, words * width


def test_models_trained_in_full_keep_sixteen_bytes_a_weight(planned: Any) -> None:
    networks = {str(network.key): network for network in planned().networks}
    total, head = weights_of_tiny_llama()
    # two actors of their own, and a critic without the LM head, with a value head of 32 + 1
    for name, count in (("actor-ada", total), ("critic-team", total - head + 33)):
        one = networks[name]
        assert (one.trained, one.weights, one.gradients, one.adam) == (
            count,
            4 * count,
            4 * count,
            8 * count,
        )


def test_adapters_share_one_frozen_base_in_its_compute_type(planned: Any) -> None:
    networks = {str(network.key): network for network in planned(*SHARED).networks}
    total, _ = weights_of_tiny_llama()
    # rank 2 on q, k, v, o, gate, up, down of two layers: 2 x (inputs + outputs) each
    pairs = (32 + 32) + 2 * (32 + 16) + (32 + 32) + 3 * (32 + 48)
    adapter = 2 * 2 * pairs
    assert networks["actor-ada"].weights == 4 * total + 4 * adapter
    assert networks["actor-ben"].weights == 4 * adapter
    assert networks["critic-team"].trained == adapter + 33
    assert networks["actor-ben"].adam == 8 * adapter
    narrow = planned(*SHARED, "models.*.dtype=bfloat16", "critic.dtype=bfloat16").networks[0]
    assert narrow.weights == 2 * total + 4 * adapter, "the adapter stays float32"


def test_checkpointing_needs_less_in_an_update(estimated: Any) -> None:
    plain, again = (
        estimated(*both).peak("cpu")
        for both in ((), ("models.*.checkpointing=true", "critic.checkpointing=true"))
    )
    assert again < plain


def test_rows_of_equal_tokens_are_planned_as_different_ones() -> None:
    row = Row(tokens=(0,) * 5, pieces=(Piece(0, 5, -1, 0, 0),), spans=())
    cut = cut_rows([row, row, row], token_budget=10)
    assert sorted(map(padded, cut)) == [5, 10]
    assert len({one.passage for one in max(cut, key=padded)}) == 2


def test_packed_trees_on_a_described_accelerator_have_a_dense_mask(
    estimated: Any, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colearn.models.tree_attention._CALL", -1)  # blocks wherever they exist

    def run() -> Estimate:
        made: Estimate = estimated(
            "agents.*.sampling.max_tokens=40",
            "train={episodes: 1, token_budget: 100000}",
            "run.device=auto",
            machine=read_machine("80GB"),
            algorithm={"name": "magrpo", "rollout": {"k": 2}},
            critic=None,
            passes=Passes(),
        )
        assert made.steps is not None
        return made

    dense = run()
    monkeypatch.delattr("colearn.estimate.fake_team.DescribedBase._masks")
    blocks = run()
    (tokens, _) = (total.tokens for total in dense.steps.updates.values())
    # a bool for each pair of tokens, and the same as float32 in both layers
    more = dense.phases["cuda:0"]["actor update"] - blocks.phases["cuda:0"]["actor update"]
    assert more > (1 + 2 * 4) * tokens**2 / 2


def test_joint_passes_hold_the_gradients_of_all_adapters(planned: Any) -> None:
    separate, joint = (
        planned(SHARED[0], f"train.joint_passes={on}", algorithm={"name": "magrpo"}, critic=None)
        for on in ("false", "true")
    )
    (gradients,) = {one.gradients for one in joint.networks}
    phases = [made.phases["cpu"] for made in (separate, joint)]
    steps = [needed["optimizer step"] - needed["checkpoint"] for needed in phases]
    assert steps[1] - steps[0] == gradients > 0


def test_a_joint_pass_of_actors_and_their_critic_is_rehearsed_as_one(estimated: Any) -> None:
    """On the rows of all three, of which those of the critic need a value head."""
    frozen = "algorithm.value_loss.frozen_targets=true"
    made = estimated(*SHARED, frozen, "train.joint_passes=true", passes=Passes())
    rehearsed = [(one.cost, len(work.largest)) for one, work in made.place.updates.values()]
    assert rehearsed == [rehearsed[0]] * 3 and rehearsed[0][0].launches > 0


def test_a_reference_is_a_copy_without_a_learner(planned: Any) -> None:
    networks = {str(network.key): network for network in planned("algorithm.loss.kl=0.1").networks}
    one = networks["reference-ada"]
    assert (one.trained, one.weights, one.adam) == (0, 4 * weights_of_tiny_llama()[0], 0)


def test_what_follows_a_policy_is_an_adapter_of_its_own(planned: Any) -> None:
    """A reference that moves, and each past self of a league: no learner, and no second base."""
    more = (
        "algorithm.loss.kl=0.1",
        "algorithm.loss.reference_update_every=5",
        "cast.name=league",
        "cast.pool=2",
    )
    networks = {str(network.key): network for network in planned(*SHARED, *more).networks}
    adapter = networks["actor-ada"].trained
    for name in ("reference-ada", "past-0-ben", "past-1-ada"):
        one = networks[name]
        assert (one.trained, one.weights, one.gradients, one.adam) == (0, 4 * adapter, 0, 0)
    assert sum(name.startswith("past-") for name in networks) == 4


def test_keys_and_values_of_the_widest_turn(planned: Any) -> None:
    run = planned("evaluation.episodes=8")
    # 2 (keys, values) x 2 layers x 2 heads x 8 wide x 4 bytes = 256 a slot. Each agent has a base
    # and so a generator of its own: 8 rows of one block of 64 slots at the second turn, beside
    # the first turn's.
    assert run.caches["cpu"] == 256 * 2 * 8 * (64 + 64)


def test_caches_of_the_episodes_that_are_played_together(planned: Any) -> None:
    slots = 256 * 2 * (64 + 64)  # bytes of both agents' blocks in two consecutive turns
    assert planned("evaluation.episodes=8", "evaluation.at_once=3").caches["cpu"] == 3 * slots
    run = planned("train.episodes=8", "train.at_once=5")
    assert run.caches["cpu"] == 5 * slots
    # a process has four of the eight
    shared = planned("train.episodes=8", "train.at_once=5", processes=2)
    assert shared.caches["cpu"] == 4 * slots


def test_deepspeed_divides_moments_among_processes(planned: Any) -> None:
    network = planned("run.learner=deepspeed", processes=2).networks[0]
    total, _ = weights_of_tiny_llama()
    part = total // 2 + total % 2
    assert network.adam == 8 * part + 4 * part  # two moments, and the copy that is stepped


ONE = {"models": {"team": {"path": "?"}}, "agents": {"*": {"model": "team"}}}


def test_a_pass_needs_its_activations_also_where_gradients_are_divided(
    estimated: Any, model: str, tmp_path: Path
) -> None:
    """One micro-batch, whose peak comes before there is any gradient."""
    file = tmp_path / "zero.json"
    file.write_text('{"zero_optimization": {"stage": 2, "reduce_bucket_size": 1}}')
    needed = []
    for learner in ("local", {"name": "deepspeed", "config": str(file)}):
        made = estimated(
            f"models.team.path={model}",
            "agents.*.sampling.max_tokens=10",
            "train.token_budget=100000",
            **ONE,
            algorithm={"name": "magrpo"},
            critic=None,
            run={"device": "cpu", "learner": learner},
            processes=1 if learner == "local" else 2,
        )
        (network,) = made.networks
        phases = made.phases["cpu"]
        always = phases["optimizer step"] - network.gradients - network.kept.step
        needed.append(phases["actor update"] - always)
    assert needed[1] >= needed[0]


def rehearsed(shape: Any, script: Script) -> Rehearsed:
    """One episode whose actions have one token each."""
    one_token = AgentSpec(sampling=Sampling(max_tokens=1))
    return rehearse(script, shape, dict.fromkeys(script[0].seen, one_token))


@pytest.mark.parametrize(
    ("shape", "nodes", "joint"),
    [
        (Chain(), [1, 1], 2),
        # Proposition 4.3: K (K^H - 1) / (K - 1) with K = 3, H = 2
        (KaryTree(3), [1, 3], 12),
        (Parallel(3), [1, 3], 6),
        # K^m + K^(mH) with two agents: 9 + 81
        (Cross(3), [1, 9], 90),
    ],
)
def test_a_shape_costs_what_it_says(
    shape: Any, nodes: list[int], joint: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    task = task_class("notes")(horizon=2)
    script = read_script(task, task.items("train")[0], 0)
    episode = rehearsed(shape, script)
    asked = {(turn, agent): nodes[turn] for turn in (0, 1) for agent in script[turn].seen}
    assert (episode.asked, episode.counts.joint_actions) == (asked, joint)


def test_generations_are_actions_of_all_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, notes="tiny:Notes")
    task = task_class("notes")(agents=3, horizon=2)
    script = read_script(task, task.items("train")[0], 0)
    assert rehearsed(KaryTree(3), script).counts.generations == 36  # 3 agents x 12


def test_new_tokens_are_actions_at_their_limit(planned: Any) -> None:
    steps = planned().steps
    # 2 episodes x 2 turns, 2 agents, 4 tokens each
    assert (steps.joint_actions, steps.generations, steps.new_tokens) == (4, 8, 32)


def test_a_model_that_is_elsewhere_is_named_with_the_remedy(planned: Any) -> None:
    told = (
        r"^critic\.path: not on this machine: nobody/nothing; .* or set critic\.path to a folder$"
    )
    with pytest.raises(ConfigError, match=told):
        planned("critic.path=nobody/nothing")


def test_a_folder_that_is_not_there_is_a_mistake(planned: Any) -> None:
    with pytest.raises(ConfigError, match=r"critic.path: no folder /nowhere"):
        planned("critic.path=/nowhere")


def test_turns_that_an_episode_did_not_reach_keep_the_order_in_which_agents_act() -> None:
    # with empty answers the task ends after its first round, two of the pipeline's four micro-turns
    task: Pipeline[Any, Any] = Pipeline(Notes(horizon=2, ends=True))
    script = read_script(task, task.items("train")[0], 0)
    assert [tuple(turn.seen) for turn in script] == [("ada",), ("ben",)] * 2


def test_an_item_is_counted_with_its_own_longest_episode(planned: Any) -> None:
    def of_games(*games: str) -> Estimate:
        task = {"name": "open_spiel", "prompt": "compact", "games": [*games]}
        run: Estimate = planned(task=task, algorithm={"name": "marshal"}, critic=None)
        return run

    short, long = of_games("kuhn_poker"), of_games("tic_tac_toe")
    both = of_games("kuhn_poker", "tic_tac_toe")
    actions = [run.steps.joint_actions for run in (short, long, both) if run.steps is not None]
    assert actions == [2 * 3, 2 * 9, 3 + 9]  # two episodes, each of its game
    # two long games at once is the most that a rollout can hold
    assert short.caches["cpu"] < long.caches["cpu"] == both.caches["cpu"]


def test_the_longest_item_is_counted_wherever_it_stands(planned: Any) -> None:
    short = ["kuhn_poker", "leduc_poker", "matrix_rps", "goofspiel(num_cards=3)"]
    task = {"name": "open_spiel", "prompt": "compact", "test_games": "kuhn_poker"}
    games = [*short, "tic_tac_toe"]
    run = planned(task=task | {"games": games}, algorithm={"name": "marshal"}, critic=None)
    task = build_task(run.run.config)
    *_, longest = probed_items(task, task.items("train"))
    assert len(read_script(task, longest, 0)) == 9, "tic-tac-toe, the fifth"


def test_a_wrapper_counts_an_item_as_its_task_does_where_turns_are_alike() -> None:
    class Halved(Notes):
        def horizon_of(self, item: Any) -> int:
            return self.horizon // 2

    task = Halved(horizon=4)
    item = task.items("train")[0]
    assert Discussion(task).horizon_of(item) == 2
    assert Pipeline(task).horizon_of(item) == 4 * len(task.agents)
