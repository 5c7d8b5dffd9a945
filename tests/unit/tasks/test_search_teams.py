"""The search teams: what they ask, what they pay, and whom, by hand on a made-up country."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from trees import chain

from colearn.contract import joint_observations
from colearn.contract.testing import check_task
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.credit.invocation import Invocation
from colearn.tasks.search import (
    IterativeSearch,
    MHGPOTeam,
    ParallelRetrieval,
    RetrieveExtractAnswer,
    SingleModel,
)
from colearn.tasks.search.reading import merged, read_queries, read_tagged
from colearn.tasks.search.world import KINDS, World

RNG = np.random.default_rng(0)
TEAMS = (MHGPOTeam, ParallelRetrieval, RetrieveExtractAnswer, IterativeSearch)


def play(task, item, *turns: Mapping[str, str]):
    """The outcomes of these joint actions."""
    state, outcomes = task.reset(item, RNG), []
    for said in turns:
        assert set(joint_observations(task, state)) == set(said)
        outcomes.append(task.step(state, said, RNG))
        state = outcomes[-1].state
    return outcomes


def asked(kind: str, split: str = "train"):
    """A task's question of a kind with two facts, and what the country knows about it."""
    world = World()
    question = next(q for q in world.questions(split, (kind,)) if "of town of" in q.text)
    passages = {passage.title: passage.text for passage in world.passages()}
    return question, passages


def item_of(task, text):
    return next(item for item in task.items("train") if item.text == text)


@pytest.mark.parametrize("team", [*TEAMS, SingleModel])
def test_every_team_keeps_the_contract(team):
    task = team(prompt="compact")
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)


def test_every_question_is_answered_by_the_passages_that_it_names():
    world = World()
    passages = {passage.title: passage.text for passage in world.passages()}
    for question in world.questions("train", KINDS) + world.questions("test", KINDS):
        words = [word for title in question.titles for word in passages[title].split()]
        key = question.text.split()[0]
        assert (key, question.answer) in itertools.pairwise(words)


def test_train_and_test_questions_differ_and_chosen_kinds_do_not_move_them():
    world = World()
    train, test = (world.questions(split, KINDS) for split in ("train", "test"))
    assert not {q.text for q in train} & {q.text for q in test}
    assert 0.15 < len(test) / (len(train) + len(test)) < 0.35
    assert set(world.questions("test", ("bridge",))) == {q for q in test if q.kind == "bridge"}


def test_a_linked_town_is_found_by_the_person_s_name_and_a_bridged_one_is_not():
    task = ParallelRetrieval()
    for kind, retrieved in (("linked", True), ("bridge", False)):
        question, _ = asked(kind)
        person, town = question.titles
        titles = {passage.title for passage in task.retriever.search(person, 5)}
        assert person in titles and (town in titles) is retrieved


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("### who; where ###", ("who", "where")),
        ("Sure. ### one  two ; three", ("one two", "three")),
        ("first\nsecond; ; ", ("first", "second")),
        ("", ()),
    ],
)
def test_queries_are_read_from_a_marked_list_or_the_whole_text(text, queries):
    assert read_queries(text) == queries


def test_lists_are_merged_by_rank_and_tags_read_even_where_they_are_open():
    assert merged([[1, 2, 3], [2, 4]]) == [1, 2, 4, 3]
    assert read_tagged("<answer>Rome</answer> ", "answer") == "Rome"
    assert read_tagged("<answer> Rome", "answer") == "Rome"
    assert read_tagged("Rome", "answer") is None


def test_mhgpo_pays_the_team_f1_and_no_penalty_for_a_proper_episode():
    task = MHGPOTeam(prompt="compact")
    question, passages = asked("linked")
    person, town = question.titles
    item = item_of(task, question.text)
    outcomes = play(task, item, {"rewriter": person}, {"reranker": "0 1"})
    prompt = task.observe(outcomes[-1].state, "answerer")
    assert prompt.system is None
    assert prompt.text == f"answer {question.text}\n0 {passages[person]}\n1 {passages[town]}"
    last = task.step(outcomes[-1].state, {"answerer": f"{question.answer} indeed"}, RNG)
    assert last.reward == pytest.approx(2 / 3) and last.done
    paid = [(o.local_rewards, o.earned) for o in (*outcomes, last)]
    assert paid == [({}, {})] * 3
    assert task.metrics(last.state) == {
        **{"f1": pytest.approx(2 / 3), "em": 0.0},
        **{"accuracy": 1.0, "recall": 1.0},
        **{"queries": 1.0, "documents": 2.0, "answer_words": 2.0},
        **{"penalty_rewriter": 0.0, "penalty_reranker": 0.0, "penalty_answerer": 0.0},
    }


def test_mhgpo_s_penalties_are_each_role_s_own():
    task = MHGPOTeam(prompt="compact", longest=5)
    question, _ = asked("linked")
    person = question.titles[0]
    five = " ; ".join([person] * 5)
    outcomes = play(
        task,
        item_of(task, question.text),
        {"rewriter": five},
        {"reranker": "0 0"},
        {"answerer": "one two three four five six"},
    )
    assert [o.local_rewards for o in outcomes] == [
        {"rewriter": -0.5},
        {"reranker": -0.5},
        {"answerer": -1.0},
    ]
    assert outcomes[-1].reward == 0.0
    metrics = task.metrics(outcomes[-1].state)
    assert [metrics[f"penalty_{role}"] for role in task.agents] == [-0.5, -0.5, -1.0]
    patterns = [metrics[name] for name in ("queries", "documents", "answer_words")]
    assert patterns == [5.0, 1.0, 6.0]


@pytest.mark.parametrize("prompt", ["full", "compact"])
def test_a_single_model_answers_from_the_question_alone(prompt):
    task = SingleModel(prompt=prompt, longest=5)
    question, passages = asked("linked")
    item = item_of(task, question.text)
    shown = task.observe(task.reset(item, RNG), "answerer").text
    assert question.text in shown and not any(text in shown for text in passages.values())
    (right,) = play(task, item, {"answerer": f"{question.answer} indeed"})
    assert right.done and (right.reward, right.local_rewards) == (pytest.approx(2 / 3), {})
    (long,) = play(task, item, {"answerer": "one two three four five six"})
    assert (long.reward, long.local_rewards) == (0.0, {"answerer": -1.0})
    patterns = [task.metrics(right.state)[name] for name in ("queries", "documents", "recall")]
    assert patterns == [0.0, 0.0, 0.0]


def test_a_single_model_needs_no_corpus_for_its_questions(tmp_path):
    path = tmp_path / "own.jsonl"
    rows = [{"question": f"Who is {n}?", "answers": [f"number {n}"]} for n in range(6)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ConfigError, match=r"task\.corpus"):
        MHGPOTeam(data=str(path))
    task = SingleModel(data=str(path))
    state = task.reset(task.items("train")[0], RNG)
    assert task.legal_action(state, "answerer", RNG).startswith(" number ")


@pytest.mark.parametrize("team", TEAMS)
def test_a_search_that_fails_is_told_to_whoever_would_have_read_it(team):
    class Lost:
        def search(self, query, count):
            raise RuntimeError("the index is gone")

    task = team()
    task.retriever = Lost()
    state, told = task.reset(task.items("train")[0], RNG), []
    for _ in range(task.horizon):
        shown = joint_observations(task, state)
        told += [prompt.text for prompt in shown.values()]
        outcome = task.step(state, {a: task.legal_action(state, a, RNG) for a in shown}, RNG)
        state = outcome.state
        if outcome.done:
            break
    assert any("search: RuntimeError: the index is gone" in text for text in told)
    assert outcome.done and task.metrics(state)["recall"] == 0.0


def test_the_prompts_of_mhgpo_are_the_papers_in_its_system_and_user_turns():
    task = MHGPOTeam()
    item = task.items("train")[0]
    state = task.reset(item, RNG)
    rewriter = task.observe(state, "rewriter")
    assert rewriter.system.startswith("You are a professional assistant proficient in")
    assert rewriter.system.endswith("format: ### <query1>; <query2>; <query3>; ... ###")
    assert rewriter.text == f"Original question is {item.text}"
    state = task.step(state, {"rewriter": f"### {item.text} ###"}, RNG).state
    reranker = task.observe(state, "reranker")
    assert reranker.system.startswith("You are a helpful, respectful, and honest assistant. Your")
    assert f"answering the Question: {item.text}. Arrange them" in reranker.system
    assert reranker.text.startswith(f"Question is: {item.text}\nDocument0: {{title: ")
    assert reranker.text.endswith("\nDo not output anything else.")
    state = task.step(state, {"reranker": "0"}, RNG).state
    answerer = task.observe(state, "answerer")
    assert answerer.system.endswith("Answer the question as accurately as possible.")
    assert answerer.text.endswith(
        f"\nNow, answer the Question: {item.text}, based on the above Documents."
    )


def test_the_answerer_is_made_from_the_reranker_and_that_from_the_rewriter():
    task = MHGPOTeam(prompt="compact")
    first, second = play(task, task.items("train")[0], {"rewriter": "x"}, {"reranker": "0"})
    assert task.observe(first.state, "reranker").made_from == ((0, "rewriter"),)
    assert task.observe(second.state, "answerer").made_from == ((1, "reranker"),)


def played_by(said, outcomes, agents) -> Tree:
    """A branch as credit reads it."""
    acting = {turn: tuple(actions) for turn, actions in enumerate(said)}
    root, *others = chain([o.reward for o in outcomes], agents=agents, acting=acting).nodes
    paid = (
        replace(node, local_rewards=outcome.local_rewards, earned=outcome.earned)
        for node, outcome in zip(others, outcomes, strict=True)
    )
    return Tree(item=None, episode=0, agents=agents, nodes=(root, *paid))


def test_workflow_b_pays_every_node_the_final_f1_and_its_own_format_penalty():
    """r_v = F1 + r_fmt; the extractor answers one query a turn."""
    task = RetrieveExtractAnswer(prompt="compact")
    question, passages = asked("linked")
    person, town = question.titles
    said = (
        {"rewriter": f"{person} ; {town}"},
        {"extractor": passages[person]},
        {"extractor": ""},
        {"answerer": f"{question.answer} it is"},
    )
    outcomes = play(task, item_of(task, question.text), *said)
    answer = task.observe(outcomes[2].state, "answerer")
    assert answer.made_from == ((1, "extractor"), (2, "extractor"))
    credit = Invocation(trajectory=1.0)(played_by(said, outcomes, task.agents))
    assert [dict(node) for node in credit[1:]] == [
        {"rewriter": pytest.approx(0.5)},
        {"extractor": pytest.approx(0.5)},
        {"extractor": pytest.approx(0.5 - 1.0)},
        {"answerer": pytest.approx(0.5)},
    ]


def test_workflow_a_penalises_a_rewriter_without_a_query():
    task = ParallelRetrieval(prompt="compact")
    first, last = play(task, task.items("train")[0], {"rewriter": " ; "}, {"answerer": ""})
    assert first.local_rewards == {"rewriter": -1.0}
    assert last.local_rewards == {"answerer": -1.0} and last.reward == 0.0


def round_of(query: str, answer: str) -> tuple[Mapping[str, str], ...]:
    return (
        {"searcher": query},
        {"summarizer": "notes"},
        {"updater": "knowledge"},
        {"concluder": answer},
    )


def test_workflow_c_pays_margins_that_telescope_to_the_final_f1():
    """F1 of the answers: a_0 0, a_1 1/2, a_2 1/3, a_3 1, so margins 1/2, -1/6, 2/3."""
    task = IterativeSearch(prompt="compact")
    question, _ = asked("bridge")
    right = question.answer
    said = (
        {"planner": "nobody"},
        *round_of("a", f"{right} it is"),
        *round_of("b", f"{right} as it is so"),
        *round_of("c", right),
    )
    outcomes = play(task, item_of(task, question.text), *said)
    paid = Invocation()(played_by(said, outcomes, task.agents))
    paid_to = [next(iter(node.items())) for node in paid[1:]]
    margins = (1 / 2, 1 / 3 - 1 / 2, 1 - 1 / 3)
    scores = (1 / 2, 1 / 3, 1.0)
    expected = [("planner", 0.0)]
    for margin, score in zip(margins, scores, strict=True):
        expected += [(role, margin) for role in ("searcher", "summarizer", "updater")]
        expected.append(("concluder", score))
    assert [role for role, _ in paid_to] == [role for role, _ in expected]
    assert [r for _, r in paid_to] == pytest.approx([r for _, r in expected])
    searchers = sum(reward for role, reward in paid_to if role == "searcher")
    final = outcomes[-1].reward
    assert paid_to[0][1] + searchers == pytest.approx(final) and final == 1.0


def test_a_searcher_that_ends_is_paid_nothing_and_ends_the_episode():
    task = IterativeSearch(prompt="compact")
    question, _ = asked("bridge")
    item = item_of(task, question.text)
    outcomes = play(task, item, {"planner": question.answer}, {"searcher": "stop"})
    assert outcomes[0].local_rewards == {"planner": 1.0}
    assert outcomes[1].local_rewards == {} and outcomes[1].earned == {}
    assert outcomes[1].done and outcomes[1].reward == 1.0


def test_a_full_plan_holds_knowledge_and_a_first_answer():
    task = IterativeSearch()
    question, _ = asked("bridge")
    plan = f"<knowledge>so far</knowledge><answer>{question.answer}</answer>"
    (first,) = play(task, item_of(task, question.text), {"planner": plan})
    assert first.local_rewards == {"planner": 1.0}
    assert "Knowledge: so far" in task.observe(first.state, "searcher").text


def test_questions_of_a_file_need_a_corpus(tmp_path):
    data = tmp_path / "questions.jsonl"
    rows = [{"question": f"who {n}?", "answers": ["me"]} for n in range(5)]
    data.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ConfigError, match=r"task\.corpus: .* comes without one"):
        ParallelRetrieval(data=str(data))
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("it was me")
    task = ParallelRetrieval(data=str(data), corpus=str(tmp_path / "corpus"))
    assert (len(task.items("train")), len(task.items("test"))) == (4, 1)


def test_packaged_questions_come_with_their_corpus():
    task = ParallelRetrieval(data="packaged")
    for split in ("train", "test"):
        for item in task.items(split):
            text = " ".join(p.text for p in task.retriever.corpus.passages())
            assert item.answers[0] in text
            known = {p.title for p in task.retriever.corpus.passages()}
            assert set(item.titles) <= known


def test_a_question_of_a_file_is_in_one_split(tmp_path):
    data = tmp_path / "questions.jsonl"
    rows = [{"question": question, "answers": ["you"]} for question in "abcade"]
    data.write_text("\n".join(map(json.dumps, rows)))
    task = SingleModel(data=str(data))
    train, test = ([q.text for q in task.items(split)] for split in ("train", "test"))
    assert train and test and not {*train} & {*test}
    assert sorted((*train, *test)) == sorted("abcade")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": ["singel"]}, r"task\.kinds: unknown kind 'singel'"),
        ({"prompt": "short"}, r"task\.prompt: unknown value 'short'"),
        ({"documents": 0}, r"task\.documents: must be a whole number"),
        ({"people": 183}, r"task\.people: must be a whole number, got 183; set it to 1 to 182"),
        ({"towns": 53}, r"task\.towns: must be a whole number, got 53; set it to 1 to 52"),
        ({"data": "hotpot"}, r"task\.data: unknown value 'hotpot'"),
    ],
)
def test_a_bad_setting_is_one_line(settings, message):
    with pytest.raises(ConfigError, match=message):
        ParallelRetrieval(**settings)


def test_recall_is_not_measured_without_known_passages(tmp_path):
    rows = [{"question": f"town of {name}", "answers": ["bor"]} for name in ("al", "cor", "del")]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("bor")
    task = MHGPOTeam(data=str(tmp_path / "asked.jsonl"), corpus=str(corpus), prompt="compact")
    state = task.reset(task.items("train")[0], RNG)
    for said in ({"rewriter": "bor"}, {"reranker": "0"}, {"answerer": "bor"}):
        known = task.metrics(state)
        assert known["f1"] is known["recall"] is known["penalty_reranker"] is None
        state = task.step(state, said, RNG).state
    metrics = task.metrics(state)
    assert metrics["recall"] is None and metrics["f1"] == 1.0 and metrics["penalty_reranker"] == 0.0
