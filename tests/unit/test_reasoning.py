"""Reasoning is no act: every reader of an action's text leaves it out, whole and cut."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colearn.contract.types import Action
from colearn.deploy.client.protocol.tool_call_text import read_calls
from colearn.programs.workflow import Tool, Workflow
from colearn.programs.workflow.role_turn import find_call
from colearn.rollout.agents import AgentSpec, ChatFormat
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.tasks.answers import code_block, final_answer
from colearn.tasks.blocks import parse as parse_blocks
from colearn.tasks.coop_humaneval.parse import read_answer
from colearn.tasks.moves import read, read_compact
from colearn.tasks.open_spiel.reply import read as read_reply
from colearn.tasks.search.reading import read_queries, read_ranking, read_tagged
from colearn.text.reasoning import AnswerStream, is_balanced, reasoning_of, without_reasoning
from tests.helpers.scripted_voice import Scripted, language_players
from tests.helpers.tiny import byte_tokenizer

CALL = '<tool_call>{{"name": "{}", "arguments": {{}}}}</tool_call>'
THINKS = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)
"""A template that opens reasoning itself, as DeepSeek's does."""


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ("four", ""),
        ("<think>\nhm\n</think>\n\nfour", "hm"),
        ("hm</think>four", "hm"),
        ("<think>cut", "cut"),
        ("<think>a</think>b<think>c</think>d", "a\nc"),
        ("a<think>b</think>c</think>d", "a\nb\nc"),
        ("<think></think>four", ""),
    ],
)
def test_reasoning_is_what_an_answer_leaves_out_without_its_marks(
    text: str, reasoning: str
) -> None:
    assert reasoning_of(text) == reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("north", "north"),
        ("  kept \n", "  kept \n"),
        ("<think>south</think>north", "north"),
        ("<think>\nsouth\n</think>\n\nnorth", "north"),
        ("<think>\n\n</think>\n\n", ""),
        ("<think>south", ""),
        ("south</think>\n\nnorth", "north"),
        ("<think>a</think>one <think>b</think>two", "one two"),
        ("<think>a</think>one <think>cut", "one "),
        ("<think>the mark <think> opens</think>north", "north"),
        ("<think>a</think>draft</think>north", "north"),
        ("[THINK]south[/THINK]north", "north"),
        ("<seed:think>south</seed:think>north", "north"),
        ("<|START_THINKING|>south<|END_THINKING|>north", "north"),
        ("<mm:think>south</mm:think>north", "north"),
        ("\u25c1think\u25b7south\u25c1/think\u25b7north", "north"),
        ("<|begin_of_thought|>south<|end_of_thought|>north", "north"),
        ("<thinking>\nsouth\n</thinking>\n\nnorth", "north"),
        ("<thought>south</thought>north", "north"),
        ("<reasoning>south</reasoning>north", "north"),
        ("<reasoning>south", ""),
        ("<longcat_think>south</longcat_think>north", "north"),
        ("<Think>south</THINK>north", "north"),
        ("<thinking>south", ""),
        ("[think] of the north", "[think] of the north"),
        ("a < b and think > c", "a < b and think > c"),
    ],
)
def test_the_answer_is_what_stands_outside_of_reasoning(text: str, answer: str) -> None:
    assert without_reasoning(text) == answer


READERS: dict[str, tuple[Callable[[str], object], str, str]] = {
    "final_answer": (final_answer, "so\n#### 41", "so\n#### 42"),
    "code_block": (code_block, "```python\na = 1\n```", "```python\na = 2\n```"),
    "workflow call": (find_call, CALL.format("close"), CALL.format("open")),
    "wire calls": (
        lambda text: read_calls(text, ["close", "open"], several=True)[1],
        CALL.format("close"),
        CALL.format("open"),
    ),
    "moves": (read, '["U"]', '["D"]'),
    "compact moves": (read_compact, "U U", "D D"),
    "open_spiel": (
        lambda text: read_reply(text, {"a": 1, "b": 2}, tagged=True)[0],
        "<answer>a</answer>",
        "<answer>b</answer>",
    ),
    "open_spiel word": (lambda text: read_reply(text, {"a": 1, "b": 2}, tagged=False)[0], "a", "b"),
    "blocks": (
        lambda text: parse_blocks(text, size=(3, 3), allowed=["stone"], limit=9, short=True),
        "a1 stone",
        "b2 stone",
    ),
    "functions": (
        lambda text: read_answer(text, "f").code,
        "def f():\n    return 1\n",
        "def f():\n    return 2\n",
    ),
    "queries": (read_queries, "### red ###", "### blue ###"),
    "ranking": (lambda text: read_ranking(text, 9).chosen, "3", "4"),
    "tagged": (lambda text: read_tagged(text, "key"), "<key>a</key>", "<key>b</key>"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_the_answer_and_no_draft(name: str) -> None:
    reader, draft, answer = READERS[name]
    alone = reader(answer)
    assert alone != reader(draft)
    for text in (
        f"<think>\n{draft}\n</think>\n\n{answer}",
        f"{draft}\n</think>\n\n{answer}",
        f"<think>no\n{draft}</think>{answer}",
    ):
        assert reader(text) == alone
    assert reader(f"<think>\n{draft}\n") == reader("")


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", "<", "think>", "b c"])))
def test_parts_of_a_streamed_answer_join_to_the_answer(parts: list[str]) -> None:
    """After reasoning that nothing had opened, which was sent before its end was seen."""
    stream, sent, text = AnswerStream(), "", "".join(parts)
    for part in parts:
        sent += stream.push(part)
    answer = without_reasoning(text)
    sent += stream.finish(answer)
    assert sent == answer if is_balanced(text) else sent.endswith(answer)


def test_an_answer_after_a_closing_mark_that_nothing_opened_is_sent() -> None:
    stream = AnswerStream()
    sent = [stream.push(part) for part in ("so ", "south", "</think>", "\n", "nor", "th")]
    assert sent == ["so ", "south", "", "", "nor", "th"]
    assert stream.finish("north") == ""


class Calls(Workflow[str]):
    """One role with one tool; pays what the role's answer is."""

    agents = ("ada",)
    horizon = 4
    measures = ("closed", "opened")
    tools = ()

    def __init__(self) -> None:
        self.tools = (Tool(close), Tool(open_))

    def items(self, split: str) -> list[str]:
        return ["item"]

    async def run(self, team, item) -> None:  # type: ignore[no-untyped-def]
        said = await team.ask("ada", "go", tools=("close", "open_"), tool_calls=1)
        team.reward(float(said == "closed" or said == "opened"))


async def close() -> str:
    """Closes."""
    return "closed"


async def open_() -> str:
    """Opens."""
    return "opened"


def test_a_workflow_runs_the_call_of_the_answer_and_hands_on_no_reasoning() -> None:
    task, rng = Calls(), np.random.default_rng(0)
    state = task.reset("item", rng)
    text = f"<think>{CALL.format('close')}</think>{CALL.format('open_')}"
    state = task.step(state, {"ada": text}, rng).state
    assert [event.result for event in state.events if event.call.tool] == ["opened"]
    outcome = task.step(state, {"ada": "<think>closed?</think>opened"}, rng)
    assert outcome.reward == 1.0


def said_to(task, text: str, template: str = THINKS):  # type: ignore[no-untyped-def]
    """The tree of an agent that samples `text` under a template that opens reasoning."""
    chat = ChatFormat(byte_tokenizer(template=template))
    generator = Scripted(Action(text, (5, 6), (-1.0, -1.0), "length"))
    players = language_players(generator, {"ada": AgentSpec(chat=chat)})
    trees, _ = grow(task, task.items("train"), players, Chain(), seed=0)
    return trees[0]


def test_an_action_that_begins_inside_of_reasoning_says_so_and_its_draft_is_no_act() -> None:
    """Cut there, it has no mark of its own: the template wrote the opening one."""
    tree = said_to(Calls(), f"I could {CALL.format('close')}")
    state = tree.nodes[1].state
    assert tree.nodes[1].actions["ada"].text.startswith("<think>\nI could <tool_call>")
    assert not [event for event in state.events if event.call.tool]


def test_the_same_text_is_an_act_where_no_template_opened_reasoning() -> None:
    tree = said_to(Calls(), f"I could {CALL.format('close')}", THINKS.replace("<think>\n", ""))
    assert [e.result for e in tree.nodes[1].state.events if e.call.tool] == ["closed"]


def test_marks_that_are_special_tokens_stay_in_the_text() -> None:
    special = ("<|pad|>", "<|end|>", "<think>", "</think>", "<|channel>", "<channel|>")
    tokenizer = byte_tokenizer(template=None, special=special)
    chat = ChatFormat(tokenizer)
    for opens, closes in (special[2:4], special[4:]):
        tokens = tokenizer(f"{opens}a{closes}b<|end|>", add_special_tokens=False)["input_ids"]
        assert chat.decode(tuple(tokens)) == "<think>a</think>b"


def test_reasoning_in_the_channel_of_gpt_oss_is_no_act() -> None:
    """Each message of an answer has a channel; the answer ends at `<|return|>` alone."""
    pytest.importorskip("trl", reason="its template is the reference")
    source = (files("trl.chat_templates") / "gptoss.jinja").read_text(encoding="utf-8")
    special = ("<|pad|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|end|>")
    tokenizer = byte_tokenizer(template=source, special=(*special, "<|call|>"))
    chat = ChatFormat(tokenizer)
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in special}
    assert chat.end_ids == {ids["<|return|>"]}
    thought = f"<|channel|>analysis<|message|>I could {CALL.format('close')}"
    answer = f"<|start|>assistant<|channel|>final<|message|>{CALL.format('open')}<|return|>"

    def said(text: str) -> str:
        return chat.decode(tuple(tokenizer(text, add_special_tokens=False)["input_ids"]))

    assert said(f"{thought}<|end|>{answer}") == (
        f"<think>I could {CALL.format('close')}</think>{CALL.format('open')}"
    )
    assert without_reasoning(said(thought)) == ""
    assert said("<|channel|>final<|message|>red<|return|>") == "red"
    assert said(f"<|channel|>commentary<|message|>I open. <|end|>{answer}") == (
        f"I open. {CALL.format('open')}"
    )
    assert said("<|channel|>anal") == ""
    assert said("red<|return|>") == "red"
