"""The joint distribution of the first two sampled tokens against plain transformers.

An outcome is a pair of tokens, or the end token alone. Greedy decoding against `generate`, and
the first token on a full vocabulary, are tested beside the generator.
"""

from __future__ import annotations

from collections import Counter

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


@pytest.fixture(scope="module", params=CASES)
def drawn(request, model):
    """Counts of the pairs that the engine drew, and the cut under which it drew them."""
    cut = CASES[request.param]
    return our_pairs(model, **cut), cut


def our_pairs(model, **sampling):
    settings = Sampling(temperature=TEMPERATURE, max_tokens=2, **sampling)
    voice = AgentSpec(adapter=None, chat=ChatFormat(byte_tokenizer()), sampling=settings)
    generator = TransformersEngine(Base(model), {"ada": voice})
    request = token_request({"ada": voice}, "ada", PROMPT, tuple(range(DRAWS)))
    (answers,) = generator.generate([request])
    return Counter(answer.action.tokens for answer in answers)


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


def test_both_cuts_of_these_tests_drop_outcomes(model):
    both, cut = set(exact(model, **CASES["cut"])), CASES["cut"]
    for name, value in cut.items():
        assert both < set(exact(model, **{name: value})) < set(exact(model))


def test_pairs_of_tokens_are_drawn_with_the_probabilities_of_transformers(model, drawn):
    counts, cut = drawn
    assert p_value(counts, exact(model, **cut)) > 1e-3


def test_the_same_counts_are_not_those_of_another_temperature(model, drawn):
    counts, cut = drawn
    assert p_value(counts, exact(model, 0.8, **cut)) < 1e-6
