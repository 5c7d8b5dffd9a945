"""The distribution that tokens are drawn from, and what a draw depends on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from asking import token_request
from scipy import stats
from tiny import Notes, byte_tokenizer, cast, play
from transformers import TopKLogitsWarper, TopPLogitsWarper

from colearn.contract import Sampling, TokenHistory, TokenRequest
from colearn.engines.job import DecodingRow, Job
from colearn.engines.sampling import TokenDrawing
from colearn.rollout.shapes import KaryTree

DRAWS = 4000
CPU = torch.device("cpu")
PROMPT = byte_tokenizer()("<|user|>tell me<|assistant|>")["input_ids"]


def first_tokens(team, draws=DRAWS):
    """First tokens of many draws for one prompt: the prompt runs once and is forked."""
    generator = team.generators[id(team.bases["ada"])]
    request = token_request(team.voices, "ada", PROMPT, tuple(range(draws)))
    (answers,) = generator.generate([request])
    return np.array([answer.action.tokens[0] for answer in answers])


def exact(team, temperature=1.0, warpers=()):
    """The first token's probabilities through transformers."""
    with torch.no_grad():
        scores = team.bases["ada"].causal(torch.tensor([PROMPT])).logits[:, -1] / temperature
    for warper in warpers:
        scores = warper(torch.tensor([PROMPT]), scores)
    return scores.double().softmax(-1)[0].numpy()


def chi_square(tokens, probabilities):
    """p-value of the counts; tokens expected less than five times are put together."""
    counts = np.bincount(tokens, minlength=len(probabilities))
    assert counts[probabilities == 0].sum() == 0
    expected = probabilities * len(tokens)
    often = expected >= 5
    seen = [*counts[often], counts[~often].sum()]
    wanted = [*expected[often], expected[~often].sum()]
    if wanted[-1] < 5:
        seen[-2:], wanted[-2:] = [sum(seen[-2:])], [sum(wanted[-2:])]
    return stats.chisquare(seen, wanted).pvalue


@pytest.mark.parametrize("temperature", [0.5, 1.6])
def test_tokens_are_drawn_from_the_softmax(temperature):
    team = cast(agents=("ada",), max_tokens=1, temperature=temperature)
    assert chi_square(first_tokens(team), exact(team, temperature)) > 1e-3


def test_tokens_are_drawn_from_the_cut_softmax():
    team = cast(agents=("ada",), max_tokens=1, top_k=20, top_p=0.5)
    warpers = [TopKLogitsWarper(20), TopPLogitsWarper(0.5)]
    assert chi_square(first_tokens(team), exact(team, warpers=warpers)) > 1e-3


def uniforms(seed, count, **sampling):
    chat = cast(agents=("ada",)).voices["ada"].chat
    request = TokenRequest(
        agent="ada", history=TokenHistory(), sampling=Sampling(**sampling), seeds=(seed,)
    )
    row = DecodingRow(Job(request, chat), 0)
    return [row.uniform() for _ in range(count)]


def test_a_second_token_is_drawn_independently_of_the_first():
    pairs = np.array([np.random.default_rng(seed).random(2) for seed in range(4000)])
    assert uniforms(7, 2) == pairs[7].tolist()
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.06


def kept(sampler, logits):
    return torch.isfinite(sampler.cut(logits))


@pytest.mark.parametrize("top_k", [1, 2, 17, 261])
def test_top_k_keeps_the_tokens_that_transformers_keeps(top_k):
    logits = torch.randn(8, 261, generator=torch.Generator().manual_seed(top_k)) * 3
    sampler = TokenDrawing([Sampling(top_k=top_k)] * 8, CPU)
    assert torch.equal(kept(sampler, logits), torch.isfinite(TopKLogitsWarper(top_k)(None, logits)))


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 0.999])
def test_top_p_keeps_the_tokens_that_transformers_keeps(top_p):
    logits = torch.randn(64, 261, generator=torch.Generator().manual_seed(3)) * 3
    sampler = TokenDrawing([Sampling(top_p=top_p)] * 64, CPU)
    assert torch.equal(kept(sampler, logits), torch.isfinite(TopPLogitsWarper(top_p)(None, logits)))


def test_a_row_without_cuts_keeps_all_tokens_beside_a_row_with_cuts():
    """Sums of float32 probabilities may pass 1 before the last token."""
    logits = torch.randn(33, 261, generator=torch.Generator().manual_seed(0)) * 3
    sampler = TokenDrawing([*[Sampling()] * 32, Sampling(top_p=0.5)], CPU)
    assert kept(sampler, logits)[:32].all()


def test_a_uniform_number_of_zero_draws_no_token_that_was_cut():
    logits, zero = torch.tensor([[0.0, 1.0, 5.0, 2.0]]), torch.zeros(1, dtype=torch.float64)
    tokens, _ = TokenDrawing([Sampling(top_k=1)], CPU).choose(logits, zero)
    assert tokens.tolist() == [2]


@pytest.mark.parametrize(
    "settings", [{"top_p": 1e-50}, {"temperature": 1e-40}, {"temperature": 5e-324}]
)
def test_settings_that_round_to_zero_draw_the_likeliest_token(settings):
    logits, half = torch.tensor([[0.0, 1.0, 5.0, 2.0]]), torch.full((1,), 0.5, dtype=torch.float64)
    tokens, (logprob,) = TokenDrawing([Sampling(**settings)], CPU).choose(logits, half)
    plain = float(logits.log_softmax(-1)[0, 2])
    assert tokens.tolist() == [2]
    assert float(logprob) == pytest.approx(plain if "top_p" in settings else 0.0, abs=1e-6)


def test_the_recorded_logprob_is_that_before_the_cut():
    team = cast(agents=("ada",), max_tokens=1, top_k=3, temperature=0.7)
    generator = team.generators[id(team.bases["ada"])]
    request = token_request(team.voices, "ada", PROMPT, (0,))
    (((token,), (logprob,)),) = [
        (answer.action.tokens, answer.action.logprobs)
        for (answer,) in generator.generate([request])
    ]
    assert abs(logprob - np.log(exact(team, 0.7)[token])) < 1e-5


def test_temperature_zero_is_greedy_and_records_logprobs_at_one():
    team = cast(agents=("ada",), max_tokens=1, temperature=0.0)
    generator = team.generators[id(team.bases["ada"])]
    request = token_request(team.voices, "ada", PROMPT, (0, 1))
    (answers,) = generator.generate([request])
    probabilities = exact(team)
    for answer in answers:
        assert answer.action.tokens == (int(probabilities.argmax()),)
        assert abs(answer.action.logprobs[0] - np.log(probabilities.max())) < 1e-5


def texts(trees):
    return [
        {agent: action.tokens for agent, action in node.actions.items()}
        for tree in trees
        for node in tree.nodes
    ]


def test_a_rows_draws_do_not_depend_on_the_batch_it_is_in():
    """One item alone, and the same item among five others of other lengths."""
    many = Notes(items=6)
    together = play(many, cast(), KaryTree(2))
    alone = play(Notes(clues=many.clues[:1]), cast(), KaryTree(2))
    assert texts(alone) == texts(together[:1])


def test_a_rows_uniform_numbers_do_not_depend_on_its_limit():
    assert uniforms(5, 3, max_tokens=3) == uniforms(5, 50, max_tokens=50)[:3]


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others():
    task, team = Notes(), cast()
    assert texts(play(task, team, seed=1)) == texts(play(task, cast(), seed=1))
    assert texts(play(task, team, seed=1)) != texts(play(task, team, seed=2))


def test_the_branches_of_a_fork_differ():
    (tree, *_) = play(Notes(), cast(), KaryTree(4))
    for node in tree.nodes:
        actions = [child.actions["ada"].tokens for child in tree.children(node.index)]
        assert not actions or len(set(actions)) > 1


def test_two_agents_on_one_model_draw_differently_from_the_same_prompt():
    (tree, *_) = play(Notes(clues=(("oak", "oak"),)), cast(max_tokens=20))
    assert tree.nodes[0].observations["ada"] == tree.nodes[0].observations["ben"]
    assert tree.nodes[1].actions["ada"] != tree.nodes[1].actions["ben"]
