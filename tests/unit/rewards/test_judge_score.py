"""A judge's reply: which score it states, and that nothing ambiguous is read."""

from __future__ import annotations

import pytest
from growth import is_linear

from colearn.tasks.rewards.judge_score import read_score

READ = {
    "Score: 7": 7,
    "score: 7.5": 7.5,
    "SCORE : 7.": 7,
    "Score=7": 7,
    "Score: 0": 0,
    "Score: 10": 10,
    "Score:7/10": 7,
    "Score: 7 / 10.": 7,
    "Score: 7 out of 10": 7,
    "Final score: 7": 7,
    "**Score:** 7": 7,
    "**Score**: **7**/10": 7,
    "### Score: 7": 7,
    "* Score: 7": 7,
    "It has 2 faults in 3 places.\nScore: 7": 7,
    "Score: 7\nIt is wrong in 2 places.": 7,
    "Score: 7\n\nFinal score: 7": 7,
    "<think>Score: 2? No.\nScore: 3</think>\nScore: 7": 7,
    "<|START_THINKING|>\nScore: 2\n<|END_THINKING|>\nScore: 7": 7,
    "It quotes a score. My score: 7": 7,
    "All in all, my score is 7": 7,
    "In sum my score is 7, since it has no source.\nScore: 7": 7,
    "Total score is computed from all parts.\nScore: 7": 7,
    '{"score": 7}': 7,
    '{"Score": "7"}': 7,
    '{"score": "7/10"}': 7,
    '```json\n{\n  "score": 7\n}\n```': 7,
    'My verdict: {"reason": "it says {2}", "score": 7}': 7,
    "Score (0-10): 7": 7,
    "Score [0-10]: **7**": 7,
    "<score>7</score>": 7,
    "It is right.\n<score> 7/10 </score>": 7,
    "In sum my score is 7 because it has no source.": 7,
    '{"final_score": 7}': 7,
    '{"Overall score": 7, "max_score": 10}': 7,
    '{"score": 7, "range": [0, 10]}': 7,
    "7": 7,
    " 7.5 ": 7.5,
    "**7**": 7,
    "3 out of 10": 3,
    "8/10": 8,
}

REFUSED = [
    "",
    "seven",
    "0 - it is wrong in 2 places",
    "Of 10 points I give 2.5",
    "The answer has 3 faults, so 7",
    "7-8",
    "7,5",
    "7%",
    "3/5",
    "3 out of 5",
    "1*0",
    "\u0667",
    "NaN",
    "11",
    "Score: 11",
    "Score: -3",
    "Score:",
    "Score: 7 or 8",
    "Score: 7,5",
    "Score: 70/100",
    "Score: seven",
    "Score: 7 - or rather 8",
    "Score: 3\nScore: 7",
    "Score: 7\nScore: N",
    'Score: 3\n{"score": 7}',
    '{"score": 3} {"score": 7}',
    '{"score": 3, "score": 7}',
    '{"score": null}',
    '{"score": [7]}',
    '{"score": NaN}',
    '{"score": 99}',
    '{"verdict": {"points": 7}}',
    '{"score": 7',
    "Score: 7\nScore (0-10): 3",
    "Score (0-100): 7",
    "<score>3</score>\nScore: 7",
    "<score>about 7</score>",
    "This is not my final score: 7",
    "I wouldn't say that my score is 7",
    "Had it been complete, my score: 9, but it is not",
    "All in all, my score is 7, maybe 8",
    "All in all, my score is 7 for style, 3 for truth",
    '{"score": 7, "max_score": 100}',
    '{"score": 7, "scale": "0-100"}',
    '{"score": 7, "range": [0, 100]}',
    '{"score": 3, "final_score": 7}',
    "<think>Score: 7",
    "<seed:think>\nScore: 7",
    "<thinking>\nScore: 7\n</thinking>\nI will not tell",
    "<|START_THINKING|>\nScore: 7\n<|END_THINKING|>\nI will not tell",
    "It says\nScore: 10\nto cheat. My score: 0",
    "All in all, my score is 7 or 8",
    "Score: 10\nThat line is a quote; my actual score is 2",
    "Score: 3</think>\nScore: 7",
    "Score: " + "9" * 400,
    "Score: 7\n" * 10_000,
]


@pytest.mark.parametrize("reply", READ)
def test_a_stated_score_is_read(reply):
    assert read_score(reply, 0.0, 10.0) == READ[reply]


@pytest.mark.parametrize("reply", REFUSED, ids=lambda reply: reply[:40])
def test_a_reply_that_states_no_single_score_is_refused(reply):
    assert read_score(reply, 0.0, 10.0) is None


def test_the_scale_may_have_any_range():
    assert read_score("Score: -3", -5.0, 5.0) == -3.0
    assert read_score("Score: 3/5", 1.0, 5.0) == 3.0
    assert read_score("Score: 0", 1.0, 5.0) is None


@pytest.mark.parametrize("piece", ["{", "<think>", "Score: ", "9"])
def test_the_cost_of_reading_a_reply_is_linear_in_its_length(piece):
    assert read_score(piece * (20_000 // len(piece)), 0.0, 10.0) is None
    assert is_linear(lambda length: read_score(piece * (length // len(piece)), 0.0, 10.0), 4000)
