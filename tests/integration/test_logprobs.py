"""What the generator recorded, what the teacher-forced pass gives and what transformers gives."""

from __future__ import annotations

import math

import pytest
import torch
from asking import token_request
from local_learners import local_learner
from tiny import (
    ARCHITECTURES,
    Notes,
    behaviour,
    branch_parts,
    byte_tokenizer,
    cast,
    forced,
    gap,
    merged,
    plain_logprobs,
    play,
    save_model,
    tiny_model,
)
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    HyperCLOVAXConfig,
    HyperCLOVAXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3ForCausalLM,
)
from updates import new_updater

from colearn.contract import Sampling
from colearn.contract.types import Action
from colearn.engines.branched_slab import BranchedSlab
from colearn.engines.transformers import TransformersEngine
from colearn.errors import ConfigError
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.rollout.shapes import Chain, Cross, KaryTree

CLOSE = 1e-4
AGENTS = ("ada", "ben")


def worst(team, trees, *, budget=None):
    """Largest gap between generator and teacher-forced pass over all actions."""
    return max(
        gap(behaviour(tree, agent), forced(team, tree, agent, budget=budget))
        for tree in trees
        for agent in tree.agents
    )


@pytest.mark.parametrize(
    ("kind", "shape"),
    [*((kind, KaryTree(3)) for kind in (*ARCHITECTURES, "mistral")), ("llama", Cross(2))],
)
def test_generator_and_teacher_forcing_give_the_same_logprobs(kind, shape):
    team = cast(kind=kind)
    assert worst(team, play(Notes(ends=True, items=5), team, shape)) < CLOSE


@pytest.fixture
def branched(monkeypatch):
    """Lets all forks share their history; a list of the masks of such forks."""
    monkeypatch.setattr("colearn.engines.branched_slab.LEAST", 0)
    monkeypatch.setattr("colearn.engines.branched_slab.WASTE", 10**9)
    masks, before = [], BranchedSlab.mask

    def mask(self, *given):
        masks.append(before(self, *given))
        return masks[-1]

    monkeypatch.setattr(BranchedSlab, "mask", mask)
    return masks


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "mistral"])
@pytest.mark.parametrize("shape", [KaryTree(3), Cross(2)], ids=["tree", "cross"])
def test_forks_that_share_their_history_have_the_same_logprobs(kind, shape, branched):
    team = cast(kind=kind)
    assert worst(team, play(Notes(ends=True, items=5), team, shape)) < CLOSE
    assert branched


def test_forks_in_half_precision_have_the_same_logprobs_but_for_one_rounding(branched):
    """Processors round differently, by one step of bfloat16 at the size of a number."""
    team = cast()
    for base in team.bases.values():
        base.compute = torch.bfloat16
    trees = play(Notes(ends=True, items=5), team, KaryTree(3))
    played = [behaviour(tree, agent) for tree in trees for agent in tree.agents]
    largest = max(abs(value) for part in played for values in part.values() for value in values)
    step = 2.0 ** (math.floor(math.log2(largest)) - 7)
    assert worst(team, trees) < step < 0.1
    assert not branched  # 0.03 if they share their history


def test_packed_weights_give_the_same_logprobs_and_are_never_those_of_before_an_update(monkeypatch):
    monkeypatch.setattr("colearn.models.packed_products.SMALLEST", 1)
    monkeypatch.setattr("colearn.models.packed_products.PATIENCE", 2)
    team = cast()
    assert worst(team, play(Notes(ends=True, items=5), team, KaryTree(3))) < CLOSE
    with torch.no_grad():
        for parameter in team.bases["ada"].causal.parameters():
            parameter.mul_(1.1)
    assert worst(team, play(Notes(ends=True), team, Chain())) < CLOSE


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "mistral"])
def test_teacher_forcing_gives_the_logprobs_of_transformers_on_each_branch(kind):
    team = cast(kind=kind, temperature=0.7)
    trees = play(Notes(ends=True), team, KaryTree(3))
    model = team.bases["ada"].causal
    assert (
        max(
            gap(forced(team, tree, agent), plain_logprobs(model, tree, agent, 0.7))
            for tree in trees
            for agent in AGENTS
        )
        < CLOSE
    )


def test_a_chain_without_a_mask_gives_the_logprobs_of_transformers():
    team = cast()
    for tree in play(Notes(), team):
        (row,) = team.rows(tree, "ada")
        assert row.plain
        model = team.bases["ada"].causal
        assert gap(forced(team, tree, "ada"), plain_logprobs(model, tree, "ada")) < CLOSE


def test_a_packed_tree_equals_one_row_for_each_branch():
    team = cast()
    for tree in play(Notes(ends=True), team, KaryTree(3)):
        for agent in AGENTS:
            assert len(team.rows(tree, agent, budget=1)) == len(list(tree.leaves()))
            packed = forced(team, tree, agent)
            assert gap(packed, forced(team, tree, agent, budget=1)) < CLOSE


def test_a_tree_cut_by_a_budget_trains_every_action_once():
    team = cast()
    for tree in play(Notes(ends=True), team, KaryTree(3)):
        for budget in (1, 120, 300, None):
            spans = [
                span.node for row in team.rows(tree, "ada", budget=budget) for span in row.spans
            ]
            assert sorted(spans) == list(range(1, len(tree.nodes)))


# --- context windows -----------------------------------------------------------------------------

ONE_PROMPT, MID_TURN = 40, 50
"""Windows in tokens: about the first prompt; and one whose edge falls inside an earlier turn."""


def visible_edges(tree, leaf, agent, window):
    """By a plain walk over one branch: ids, and the first position that each of them may see."""
    ids, edges, starts, edge = [], [], [], 0
    for _, part in branch_parts(tree, leaf, agent):
        if not isinstance(part, Action):
            starts.append(len(ids))
            edge = max(edge, len(ids) + len(part.tokens) - window)
        ids += part.tokens
        edges += [edge] * len(part.tokens)
    return ids, edges, starts


def windowed_logprobs(model, tree, agent, window):
    """transformers with a mask that is written down token by token, one branch at a time."""
    by_node = {}
    for leaf in tree.leaves():
        ids, edges, _ = visible_edges(tree, leaf.index, agent, window)
        count = len(ids)
        mask = torch.full((1, 1, count, count), torch.finfo(torch.float32).min)
        for query in range(count):
            mask[0, 0, query, edges[query] : query + 1] = 0.0
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids]), attention_mask=mask).logits[0]
        scores, cursor = logits.float().log_softmax(-1), 0
        for node, part in branch_parts(tree, leaf.index, agent):
            if isinstance(part, Action):
                places = range(cursor, cursor + len(part.tokens))
                by_node[node] = tuple(scores[i - 1, ids[i]].item() for i in places)
            cursor += len(part.tokens)
    return by_node


@pytest.mark.parametrize(
    ("kind", "window", "shape"),
    [
        *((kind, MID_TURN, KaryTree(2)) for kind in (*ARCHITECTURES, "mistral")),
        ("llama", ONE_PROMPT, Chain()),
    ],
)
def test_both_passes_forget_alike_under_a_context_window(kind, window, shape):
    team = cast(kind=kind, window=window)
    assert worst(team, play(Notes(horizon=4), team, shape)) < CLOSE


@pytest.mark.parametrize("window", [ONE_PROMPT, MID_TURN])
def test_a_context_window_is_the_mask_written_down_by_hand(window):
    team = cast(kind="llama", window=window)
    model = team.bases["ada"].causal
    for tree in play(Notes(horizon=4), team, KaryTree(2)):
        reference = windowed_logprobs(model, tree, "ada", window)
        assert gap(behaviour(tree, "ada"), reference) < CLOSE


def test_the_windows_of_these_tests_really_cut_and_one_inside_a_turn():
    team = cast(window=MID_TURN)
    (tree, *_) = play(Notes(horizon=4), team)
    without = plain_logprobs(team.bases["ada"].causal, tree, "ada")
    assert gap(behaviour(tree, "ada"), without) > 0.1
    _, edges, starts = visible_edges(tree, tree.nodes[-1].index, "ada", MID_TURN)
    assert set(edges) - set(starts) - {0}


def test_a_window_forgets_pairs_in_memory():
    team = cast(window=ONE_PROMPT, agents=("ada",))
    generator = team.generators[id(team.bases["ada"])]
    chat = team.voices["ada"].chat
    history, last = None, None
    for turn in range(8):
        seen = chat.open("x" * 15) if last is None else chat.continuation("x" * 15, last)
        request = token_request(team.voices, "ada", seen.tokens, (turn,), continues=history)
        ((sampled,),) = generator.generate([request])
        history, last = sampled.history, sampled.action
    assert len(history) > 3 * ONE_PROMPT
    # the window, plus what the last turn added and the turn before still has to close
    assert generator._decoder.prefixes.take(history, None).length <= 2 * ONE_PROMPT


def test_a_window_shorter_than_one_prompt_is_a_config_error():
    team = cast(window=10)
    with pytest.raises(ConfigError, match=r"agents\.ada\.window.*raise it"):
        play(Notes(), team)


# --- adapters, sampling, ends --------------------------------------------------------------------


@pytest.mark.parametrize(
    "lora",
    [{"ada": "one", "ben": "two"}, {"ada": "one", "ben": None}, {"ada": "one", "ben": "one"}],
    ids=["two adapters", "on and off", "shared adapter"],
)
def test_agents_with_different_adapters_share_a_call(lora):
    team = cast(lora=lora)
    assert len(team.generators) == 1
    assert worst(team, play(Notes(ends=True), team, KaryTree(2))) < CLOSE


def test_an_adapter_gives_the_logprobs_of_its_weights_merged_into_the_base():
    lora = {"ada": "one", "ben": None, "cleo": "two"}
    team = cast(tuple(lora), lora=lora)
    for tree in play(Notes(agents=3), team, KaryTree(2)):
        for agent, adapter in lora.items():
            model = merged(team.bases[agent], adapter)
            assert gap(behaviour(tree, agent), plain_logprobs(model, tree, agent)) < 1e-3


def test_adapters_off_is_the_reference_policy():
    from colearn.training.learners.batch import evaluate

    team = cast(lora={"ada": "one", "ben": "two"})
    (tree, *_) = play(Notes(), team)
    (row,) = team.rows(tree, "ada")
    (outputs,) = evaluate(team.network("ada"), [row], token_budget=4096, reference=True)
    base = plain_logprobs(merged(team.bases["ada"], None), tree, "ada")
    flat = torch.tensor([value for node in sorted(base) for value in base[node]])
    assert (outputs.logprobs - flat).abs().max() < CLOSE


@pytest.mark.parametrize("temperature", [0.3, 1.7])
def test_logprobs_are_under_the_sampling_temperature(temperature):
    team = cast(temperature=temperature)
    trees = play(Notes(), team)
    assert worst(team, trees) < CLOSE
    model = team.bases["ada"].causal
    reference = plain_logprobs(model, trees[0], "ada", temperature)
    assert gap(behaviour(trees[0], "ada"), reference) < CLOSE


def test_agents_with_different_sampling_share_a_call():
    team = cast(
        settings={
            "ada": Sampling(temperature=1.5, top_k=80, max_tokens=12),
            "ben": Sampling(temperature=2.0, top_p=0.8, max_tokens=3),
        }
    )
    trees = play(Notes(), team, KaryTree(2))
    assert worst(team, trees) < CLOSE
    nodes = [node for tree in trees for node in tree.nodes[1:]]
    lengths = {agent: max(len(n.actions[agent].tokens) for n in nodes) for agent in AGENTS}
    assert lengths == {"ada": 12, "ben": 3}


def test_actions_of_every_kind_of_end_lie_in_one_batch():
    letters, end = tuple("abcdefghij"), byte_tokenizer().eos_token_id
    team = cast(max_tokens=6, stop=letters)
    trees = play(Notes(items=12), team)
    actions = [n.actions[a] for tree in trees for n in tree.nodes[1:] for a in AGENTS]
    assert {action.finish for action in actions} == {"end", "length", "stop"}
    for action in actions:
        assert action.text.endswith(letters) or action.finish != "stop"
        assert (action.tokens[-1] == end) == (action.finish == "end")
        assert end not in action.tokens[:-1]
    assert worst(team, trees) < CLOSE


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "mistral"])
def test_greedy_decoding_is_that_of_transformers_on_ragged_prompts(kind):
    team = cast(kind=kind, max_tokens=20)
    base, voice = team.bases["ada"], team.voices["ada"]
    prompts = [voice.chat.open("tell " * count).tokens for count in (1, 9, 2, 14, 5)]
    requests = [token_request(team.voices, "ada", p, (0,), greedy=True) for p in prompts]
    answers = team.generators[id(base)].generate(requests)
    for prompt, (answer,) in zip(prompts, answers, strict=True):
        expected = base.causal.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=20)[
            0, len(prompt) :
        ]
        assert answer.action.tokens == tuple(expected.tolist())


# --- the ratio -----------------------------------------------------------------------------------


def updater(team, parts, *, epochs=1, minibatch=None):
    learners = {}
    from colearn.config import OptimizerSettings

    for name in ("ada", "ben"):
        learners[name] = local_learner(
            name,
            team.network(name),
            OptimizerSettings(learning_rate=1e-3),
            token_budget=256,
            entropy=parts.loss.needs_entropy,
        )
    voices = {
        a: AgentSpec(model=a, sampling=Sampling(temperature=team.voices[a].sampling.temperature))
        for a in AGENTS
    }
    settings = {"epochs": epochs, "minibatch": minibatch, "token_budget": 256}
    return new_updater(parts, learners, specs=voices, **settings)


@pytest.mark.parametrize(("ratio", "minibatch"), [("sequence", None), ("token", 1000)])
def test_the_ratio_on_the_first_pass_over_fresh_data_is_one(ratio, minibatch):
    from colearn.algorithms.magrpo import MAGRPO

    team = cast(shared=False, temperature=0.8)
    trees = play(Notes(ends=True), team, KaryTree(2))
    metrics = updater(
        team,
        MAGRPO(rollout=KaryTree(2), loss=PolicyGradient(ratio=ratio)).parts(),
        minibatch=minibatch,
    ).update(trees, 0)
    for agent in AGENTS:
        assert abs(metrics[f"{agent}/ratio_mean"] - 1.0) < 1e-6
        assert metrics[f"{agent}/logprob_mismatch"] < CLOSE


def test_the_ratio_moves_in_a_second_epoch():
    from colearn.algorithms.magrpo import MAGRPO

    team = cast(shared=False)
    trees = play(Notes(ends=True), team, KaryTree(2))
    metrics = updater(team, MAGRPO(rollout=KaryTree(2)).parts(), epochs=2).update(trees, 0)
    assert abs(metrics["ada/ratio_mean"] - 1.0) > 1e-4


# --- what transformers does between the hidden state and the logits ------------------------------


@pytest.mark.parametrize("kind", ["cohere", "granite", "hyperclovax", "gemma3"])
def test_logits_carry_the_models_own_scaling(kind):
    shape = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
    model = {
        "cohere": lambda: CohereForCausalLM(CohereConfig(**shape, logit_scale=0.25)),
        "granite": lambda: GraniteForCausalLM(GraniteConfig(**shape, logits_scaling=4.0)),
        "hyperclovax": lambda: HyperCLOVAXForCausalLM(
            HyperCLOVAXConfig(**shape, logits_scaling=0.25)
        ),
        "gemma3": lambda: tiny_model("gemma3"),
    }[kind]()
    base, ids = Base(model.eval()), torch.arange(20)[None]
    with torch.no_grad():
        assert torch.allclose(base.logits(base.hidden(ids)), model(ids).logits, atol=1e-6)


class HalvedLogits(Qwen3ForCausalLM):
    """An architecture that scales its logits by no setting that is known."""

    def forward(self, *given, **settings):
        result = super().forward(*given, **settings)
        result.logits = result.logits / 2
        return result


def test_an_architecture_whose_logits_are_not_known_is_one_line(tmp_path, monkeypatch):
    from colearn.models.load import load_base

    folder = save_model(tmp_path)
    arguments = {"compute": "float32", "trained": True, "device": torch.device("cpu")}
    load_base(folder, field="models.ada.path", **arguments)
    monkeypatch.setattr(
        "transformers.AutoModelForCausalLM.from_pretrained", HalvedLogits.from_pretrained
    )
    with pytest.raises(
        ConfigError, match=r"^models\.ada\.path: .*\(its kind, qwen3, computes logits"
    ):
        load_base(folder, field="models.ada.path", **arguments)


# --- rotary embeddings that change with the longest row of a pass ---------------------------------


def rotary_model(kind, trained=40):
    tokenizer = byte_tokenizer()
    shape = {"vocab_size": len(tokenizer) + 8, "hidden_size": 32, "intermediate_size": 48}
    shape |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    shape |= {"initializer_range": 0.3, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": 0}
    rope = {"rope_type": kind, "rope_theta": 1e4, "factor": 4.0}
    longest = trained
    if kind == "longrope":
        longest = 4 * trained
        rope |= {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
        rope |= {"original_max_position_embeddings": trained}
    config = LlamaConfig(**shape, max_position_embeddings=longest, rope_parameters=rope)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_positions_end_where_a_rows_logits_begin_to_depend_on_its_batch(kind):
    """transformers' own pass over a row of 20 tokens, beside one of 40 and one of 41."""
    model = rotary_model(kind)
    row = torch.arange(5, 25)[None]
    alone = model(row).logits

    def beside(length):
        ids = torch.zeros((2, length), dtype=torch.long)
        ids[0, :20] = row
        return model(ids).logits[:1, :20]

    last = Base(model).positions
    assert last == 40
    assert torch.allclose(beside(last), alone, atol=1e-5)
    assert not torch.allclose(beside(last + 1), alone, atol=0.1)


def test_positions_of_other_embeddings_are_the_configs():
    assert Base(rotary_model("linear")).positions == 40
    assert Base(tiny_model("gemma3")).positions == 1024  # one setting for each kind of layer


def test_eager_attention_sees_the_same_mask():
    team = cast(kind="llama")
    team.bases["ada"].causal.set_attn_implementation("eager")
    (tree, *_) = play(Notes(), team, KaryTree(2))
    model = team.bases["ada"].causal
    assert gap(behaviour(tree, "ada"), plain_logprobs(model, tree, "ada")) < CLOSE


def test_layers_whose_cache_cannot_be_forked_are_a_config_error():
    model = tiny_model("qwen3")
    model.config.layer_types = ["linear_attention", "full_attention"]
    base, chat = Base(model), ChatFormat(byte_tokenizer())
    voice = AgentSpec(adapter=None, chat=chat, sampling=Sampling(max_tokens=2))
    request = token_request({"ada": voice}, "ada", (5, 6), (0,))
    with pytest.raises(ConfigError, match=r"models\.path: layers of kind linear_attention"):
        TransformersEngine(base, {"ada": voice}).generate([request])


def test_networks_with_and_without_entropy_give_the_same_logprobs():
    from colearn.training.learners.batch import make_batch

    team = cast()
    (tree, *_) = play(Notes(), team, KaryTree(2))
    batch = make_batch(team.rows(tree, "ada"), torch.device("cpu"))
    network = Network(team.bases["ada"])
    plain, spread = network(batch), network(batch, entropy=True)
    assert torch.equal(plain.logprobs, spread.logprobs)
    assert spread.entropy.shape == spread.logprobs.shape
