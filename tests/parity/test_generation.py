"""The joint distribution of the first two sampled tokens against plain transformers.

An outcome is a pair of tokens, or the end token alone. Greedy decoding against `generate`, and
the first token on a full vocabulary, are tested beside the generator.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from asking import token_request
from scipy import stats
from tiny import byte_tokenizer, tiny_model
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from colearn.contract import Sampling
from colearn.engines.transformers import TransformersEngine
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat

VOCABULARY = 10
PROMPT = (5, 7, 3, 9, 4, 8)
DRAWS = 8000
TEMPERATURE = 0.7
END = byte_tokenizer().eos_token_id
CASES = {"whole": {}, "cut": {"top_k": 6, "top_p": 0.9}}


@pytest.fixture(scope="module")
def model():
    return tiny_model(vocab=VOCABULARY, end_scale=1.0)


def our_pairs(model, draws=DRAWS, **sampling):
    settings = Sampling(temperature=TEMPERATURE, max_tokens=2, **sampling)
    voice = AgentSpec(adapter=None, chat=ChatFormat(byte_tokenizer()), sampling=settings)
    generator = TransformersEngine(Base(model), {"ada": voice})
    request = token_request({"ada": voice}, "ada", PROMPT, tuple(range(draws)))
    (answers,) = generator.generate([request])
    return Counter(answer.action.tokens for answer in answers)


def their_pairs(model, *, top_k=0, top_p=1.0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        generated = model.generate(
            torch.tensor([PROMPT]),
            do_sample=True,
            max_new_tokens=2,
            temperature=TEMPERATURE,
            top_k=top_k,
            top_p=top_p,
            num_return_sequences=DRAWS,
        )[:, len(PROMPT) :].tolist()
    return Counter((END,) if first == END else (first, second) for first, second in generated)


def exact(model, temperature=TEMPERATURE, *, top_k=None, top_p=None):
    """Probability of every outcome, by transformers' own warpers in the order `generate` has."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k is not None:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p is not None:
        warpers.append(TopPLogitsWarper(top_p))

    def after(*tokens):
        ids = torch.tensor([[*PROMPT, *tokens]])
        with torch.no_grad():
            scores = model(input_ids=ids).logits[:, -1]
        return warpers(ids, scores).double().softmax(-1)[0].tolist()

    probabilities = {}
    for first, p in enumerate(after()):
        if first == END:
            probabilities[(END,)] = p
        elif p > 0.0:
            probabilities |= {(first, second): p * q for second, q in enumerate(after(first))}
    return {outcome: p for outcome, p in probabilities.items() if p > 0.0}


def p_value(counts, probabilities):
    """Chi-square of counts; outcomes expected less than five times are put together."""
    assert counts.keys() <= probabilities.keys()
    drawn = counts.total()
    often = [outcome for outcome, p in probabilities.items() if p * drawn >= 5]
    seen = [counts[outcome] for outcome in often]
    expected = [probabilities[outcome] * drawn for outcome in often]
    rare = sum(probabilities.values()) * drawn - sum(expected)
    if rare >= 5:
        seen, expected = [*seen, drawn - sum(seen)], [*expected, rare]
    else:
        seen[-1], expected[-1] = drawn - sum(seen[:-1]), drawn - sum(expected[:-1])
    return stats.chisquare(seen, expected).pvalue


def two_sample_p_value(one, other):
    """Chi-square of two rows of counts; outcomes seen less than ten times are put together."""
    outcomes = [outcome for outcome in one | other if one[outcome] + other[outcome] >= 10]
    table = np.array([[counts[outcome] for outcome in outcomes] for counts in (one, other)])
    rest = np.array([[one.total()], [other.total()]]) - table.sum(1, keepdims=True)
    if rest.sum() >= 10:
        table = np.hstack([table, rest])
    return stats.chi2_contingency(table).pvalue


def test_both_cuts_of_these_tests_drop_outcomes(model):
    both, cut = set(exact(model, **CASES["cut"])), CASES["cut"]
    for name, value in cut.items():
        assert both < set(exact(model, **{name: value})) < set(exact(model))


@pytest.mark.parametrize("cut", CASES.values(), ids=CASES)
def test_pairs_of_tokens_are_drawn_with_the_probabilities_of_transformers(model, cut):
    assert p_value(our_pairs(model, **cut), exact(model, **cut)) > 1e-3


@pytest.mark.parametrize("cut", CASES.values(), ids=CASES)
def test_the_same_counts_are_not_those_of_another_temperature(model, cut):
    assert p_value(our_pairs(model, **cut), exact(model, 0.8, **cut)) < 1e-6


@pytest.mark.parametrize("cut", CASES.values(), ids=CASES)
def test_pairs_of_tokens_are_drawn_as_generate_draws_them(model, cut):
    ours, theirs = our_pairs(model, **cut), their_pairs(model, **cut)
    assert two_sample_p_value(ours, theirs) > 1e-3


def test_the_two_sample_test_finds_another_cut(model):
    assert two_sample_p_value(our_pairs(model, top_k=6), their_pairs(model, top_k=5)) < 1e-6
