"""A collapse is told where it begins; a solved task and an ordinary run are no collapse."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from colearn.contract.types import Observation
from colearn.runs.record.collapse import CollapseWatch, Finding, Sign, sentence, signs
from colearn.training.collapse_metrics import collapse_metrics
from tests.helpers.trees import chain, tree

TEAM = frozenset({"team"})
ORDINARY = {
    "return": 0.5,
    "best_return": 1.0,
    "cut_answers": 0.1,
    "invalid_episodes": 0.2,
    "advantage/actions": 32.0,
    "advantage/zero": 0.4,
    "ada/grad_norm": 0.3,
    "ben/grad_norm": 0.2,
    "ada/top_answer": 0.3,
    "critic/ada/grad_norm": 0.0,
}
"""An update of a run that learns."""

CASES = {
    Sign.ONE_ANSWER: {"ada/top_answer": 1.0},
    Sign.NO_GRADIENT: {"ada/grad_norm": 0.0, "ben/grad_norm": 0.0},
    Sign.EQUAL: {"advantage/zero": 1.0},
    Sign.CUT: {"cut_answers": 1.0},
    Sign.INVALID: {"invalid_episodes": 1.0},
    Sign.ONE_WITHOUT_GRADIENT: {"ada/grad_norm": 0.0},
}


def follow(
    updates: Iterable[Mapping[str, float | None]], optimum: float | None = None
) -> list[Finding | None]:
    watch = CollapseWatch(optimum=optimum)
    return [watch.update(number, metrics) for number, metrics in enumerate(updates, start=1)]


def test_every_sign_has_a_case():
    assert set(CASES) == set(Sign)


@pytest.mark.parametrize("sign", Sign, ids=lambda sign: sign.name)
def test_a_collapse_is_told_with_the_update_where_it_begins_and_a_remedy(sign):
    fallen = ORDINARY | CASES[sign] | {"return": 0.0, "best_return": 0.0}
    found = follow([ORDINARY] * 12 + [fallen] * 40)
    at = 12 + sign.patience
    assert found[: at - 1] == [None] * (at - 1)
    assert {(f.sign, f.since, f.solved) for f in found[at - 1 :] if f} == {(sign, 13, False)}
    assert None not in found[at - 1 :]
    line = sentence(found[-1])
    assert line.startswith(f"collapse since update 13: {sign.what}; mean return 0, best episode 1;")
    assert line.endswith(f"; first remedy: {sign.remedy}")


@pytest.mark.parametrize("sign", Sign, ids=lambda sign: sign.name)
def test_a_run_that_never_earns_anything_else_is_told_as_such(sign):
    flat = ORDINARY | CASES[sign] | {"return": 0.0, "best_return": 0.0}
    line = sentence(follow([flat] * 2 * sign.patience)[-1])
    assert line.startswith(f"nothing is learned since update 1: {sign.what}; every episode has ")
    assert "so the task is solved or out of reach" in line and sign.remedy in line


@pytest.mark.parametrize(("earned", "asked"), [(0.0, True), (0.5, False)])
def test_the_first_remedy_for_a_run_that_never_earned_is_to_check_that_it_can(earned, asked):
    flat = ORDINARY | CASES[Sign.EQUAL] | {"return": earned, "best_return": earned}
    line = sentence(follow([flat] * 10)[-1])
    assert ("; first remedy: check that a good answer earns a reward" in line) is asked


@pytest.mark.parametrize("sign", [Sign.EQUAL, Sign.NO_GRADIENT])
def test_a_solved_task_is_told_as_solved(sign):
    found = follow([ORDINARY] * 12 + [ORDINARY | CASES[sign] | {"return": 1.0}] * 20)[-1]
    assert found is not None and found.solved
    assert sentence(found) == (
        f"since update 13 {sign.what}, and the episodes earn the best return so far (1): if the "
        "task is solved, stop here"
    )


def test_a_task_that_is_solved_from_the_start_is_known_by_its_optimum():
    solved = ORDINARY | CASES[Sign.EQUAL] | {"return": 1.0, "best_return": 1.0}
    assert follow([solved] * 10, optimum=1.0)[-1].solved
    assert not follow([solved] * 10, optimum=2.0)[-1].solved


@pytest.mark.parametrize("sign", [Sign.ONE_ANSWER, Sign.CUT])
def test_one_right_answer_and_answers_that_need_no_end_are_no_collapse(sign):
    """The return rises from 0 to 0.8 of at most 1, with the sign in every update."""
    updates = [ORDINARY | CASES[sign] | {"return": min(0.8, at / 20)} for at in range(40)]
    assert [f for f in follow(updates)[20:] if f] == []
    solved = [ORDINARY | CASES[sign] | {"return": 1.0}] * 20
    assert [f for f in follow([*updates, *solved])[20:] if f] == []


def test_a_policy_that_settles_on_one_answer_while_it_learns_is_no_collapse():
    """As on a two-step game whose safe action earns 7 and whose best earns 8: from 6 to 8, then 7
    with one answer and a gradient, then 8."""
    returns = [6.0] * 6 + [8.0] * 6 + [7.0] * 12 + [8.0] * 6
    updates = [ORDINARY | CASES[Sign.ONE_ANSWER] | {"return": r, "best_return": 8} for r in returns]
    assert follow(updates) == [None] * 30


@pytest.mark.parametrize("sign", Sign, ids=lambda sign: sign.name)
def test_a_sign_that_does_not_last_is_no_collapse(sign):
    fallen = ORDINARY | CASES[sign] | {"return": 0.0}
    shown = [fallen] * (sign.patience - 1) + [ORDINARY]
    assert follow(shown * 6) == [None] * 6 * sign.patience


def test_an_agent_that_dies_beside_one_that_learns_is_told_though_the_return_rises():
    """Ada answers "" to everything from update 11 on; ben earns more in every update."""
    dead = {"ada/top_answer": 1.0, "ada/grad_norm": 0.0}
    returns = [at / 100 for at in range(50)]
    updates = [
        ORDINARY | {"return": r} | (dead if at >= 10 else {}) for at, r in enumerate(returns)
    ]
    found = follow(updates)
    assert found[:29] == [None] * 29 and None not in found[29:]
    assert found[-1].since == 11 and found[-1].sign is Sign.ONE_ANSWER
    assert Sign.ONE_WITHOUT_GRADIENT in found[-1].signs


def test_models_that_rest_in_turn_are_all_learning():
    """Each has no gradient in 12 updates, in which the other one has."""
    rests = [{f"{model}/grad_norm": 0.0} for model in ("ada", "ben") for _ in range(12)]
    assert follow([ORDINARY | rest for rest in rests * 4]) == [None] * 96


def test_the_update_where_the_first_of_two_models_was_left_behind_is_told():
    ada, ben = {"ada/grad_norm": 0.0}, {"ben/grad_norm": 0.0}
    updates = [ORDINARY | {"cy/grad_norm": 1.0} | still for still in [ben] * 6 + [ada | ben] * 20]
    assert follow(updates)[-1].since == 1
    assert follow([*updates, *[updates[-1] | {"ben/grad_norm": 1.0}]])[-1].since == 7


def test_a_model_without_a_gradient_in_a_solved_task_is_no_collapse():
    solved = ORDINARY | {"return": 1.0, "ada/grad_norm": 0.0}
    assert follow([ORDINARY] * 5 + [solved] * 40) == [None] * 45


def test_a_run_that_recovers_is_no_longer_collapsed():
    fallen = ORDINARY | CASES[Sign.EQUAL] | {"return": 0.0}
    found = follow([ORDINARY] * 5 + [fallen] * 10 + [ORDINARY] * 3)
    assert found[-4] is not None and found[-3:] == [None] * 3


def test_signs_at_once_are_told_together_with_the_remedy_of_the_cause():
    both = ORDINARY | CASES[Sign.ONE_ANSWER] | CASES[Sign.NO_GRADIENT] | {"return": 0.0}
    found = follow([ORDINARY] * 5 + [both] * 5)[-1]
    assert found is not None and found.signs == (Sign.ONE_ANSWER, Sign.NO_GRADIENT)
    assert "gives one answer to all prompts and no trained model has a gradient" in sentence(found)
    assert sentence(found).endswith(Sign.ONE_ANSWER.remedy)


def test_noisy_runs_that_learn_raise_no_alarm():
    """Shares below 1 and gradients above 0, whatever the return does."""
    draw = random.Random(0)
    for _ in range(50):
        updates = [
            ORDINARY
            | {
                "return": draw.random(),
                "ada/top_answer": draw.uniform(0, 0.999),
                "cut_answers": draw.uniform(0, 0.999),
                "advantage/zero": draw.uniform(0, 0.999),
                "ada/grad_norm": draw.choice([0.0, draw.random()]),
            }
            for _ in range(60)
        ]
        assert follow(updates) == [None] * 60


def test_updates_without_a_scored_episode_have_no_gradient():
    metrics = {"advantage/actions": 0.0, "unscored": 8.0}
    assert signs(metrics) == [Sign.NO_GRADIENT]
    assert "no episode is scored" in sentence(follow([metrics] * 6)[-1])


def test_a_critics_gradient_is_not_a_models():
    assert signs({"critic/ada/grad_norm": 0.0}) == []
    assert signs({"critic/ada/grad_norm": 1.0, "ada/grad_norm": 0.0}) == [Sign.NO_GRADIENT]


def _said(texts, prompts, finish="end", ends=()):
    """One tree per text: the agent alice answers a prompt, bob too; `ends` are final metrics."""
    trees = []
    for number, (text, prompt) in enumerate(zip(texts, prompts, strict=True)):
        grown = chain([float(number)])
        root, leaf = grown.nodes
        root = replace(root, observations={a: Observation(prompt, (1,)) for a in grown.agents})
        actions = {
            "alice": replace(leaf.actions["alice"], text=text, finish=finish),
            "bob": replace(leaf.actions["bob"], text=str(number)),
        }
        leaf = replace(leaf, actions=actions, metrics=ends[number] if ends else {})
        trees.append(replace(grown, nodes=(root, leaf)))
    return trees


MODELS = {"alice": "left", "bob": "right"}


def test_the_share_of_the_most_frequent_answer_is_that_over_different_prompts():
    found = collapse_metrics(_said(["", "", "", "x"], "abca"), TEAM, MODELS)
    assert (found["left/top_answer"], found["right/top_answer"]) == (0.75, 0.25)
    assert collapse_metrics(_said([""] * 4, "abca"), TEAM, MODELS)["left/top_answer"] == 1.0
    assert "left/top_answer" not in collapse_metrics(_said([""] * 4, "aaaa"), TEAM, MODELS)


def test_the_agent_of_a_model_with_the_largest_share_counts():
    found = collapse_metrics(_said([""] * 4, "abca"), TEAM, {"alice": "one", "bob": "one"})
    assert found["one/top_answer"] == 1.0


def test_an_agent_that_is_not_trained_collapses_nothing():
    found = collapse_metrics(_said([""] * 4, "abca", finish="length"), TEAM, {"bob": "right"})
    assert "left/top_answer" not in found and found["cut_answers"] == 0.0


def test_cut_answers_and_the_best_return_are_counted():
    found = collapse_metrics(_said(["a", "b"], "ab", finish="length"), TEAM, MODELS)
    assert found["cut_answers"] == 0.5  # alice's are cut, bob's are not
    assert found["best_return"] == 1.0


def test_the_best_return_is_that_of_a_branch():
    # root -> 1 (reward 1) -> 3 (reward 5), 4 (reward None); root -> 2 (reward 4)
    grown = tree([(0, 1.0), (0, 4.0), (1, 5.0), (1, None)])
    assert collapse_metrics([grown], TEAM, {})["best_return"] == 6.0


def test_a_truncated_branch_has_no_best_return():
    """It lacks the rewards of its last turns: two complete branches earned -7 and -5."""
    grown = tree([(0, -1.0), (0, -5.0), (0, -2.0), (1, -6.0)], truncated={3: 4})
    assert collapse_metrics([grown], TEAM, {})["best_return"] == -5.0


@pytest.mark.parametrize(
    ("ends", "share"),
    [
        ([{"invalid": 1.0}, {"invalid": 0.0}], 0.5),
        ([{"illegal": 1.0, "malformed": 0.0}, {"illegal": 0.0, "malformed": 1.0}], 1.0),
        ([{"legal": 0.0}, {"legal": 1.0}], 0.5),
        ([{"invalid": None}, {"invalid": 1.0}], 1.0),
        ([{"score": 0.0}, {"score": 0.0}], None),
    ],
)
def test_invalid_episodes_are_read_from_the_metrics_of_the_task(ends, share):
    found = collapse_metrics(_said(["a", "b"], "ab", ends=ends), TEAM, MODELS)
    assert found.get("invalid_episodes") == share


def test_a_team_that_learns_from_teachers_alone_has_not_collapsed() -> None:
    assert signs({"advantage/zero": 1.0, "ada/teacher_kl": 0.3, "ada/grad_norm": 0.1}) == []
