"""Histories on real chat templates: append-only, and what the template itself would write."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from itertools import pairwise

import pytest
from tiny import Notes, byte_tokenizer, cast, play
from tokenizers import AddedToken

from colearn.config import AgentSettings, load_config
from colearn.contract.types import Action, Observation
from colearn.deploy.export.template import write_template
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat

QWEN = ("<|endoftext|>", "<|im_end|>", "<|im_start|>")
GEMMA = ("<pad>", "<end_of_turn>", "<start_of_turn>", "<bos>")
TEMPLATES = {"qwen2_5": QWEN, "qwen3": QWEN, "gemma3": GEMMA}
TURNS = (
    ("What is seen?", "Two red\nblocks, café."),
    ('And now: {"x": 1}?', "One block."),
    ("Last turn.", "None"),
)
THOUGHT = "<think>\nIt must be blue.\n</think>\n\nblue"


def tokenizer_of(name):
    template = files("trl.chat_templates").joinpath(f"{name}.jinja").read_text()
    tokenizer = byte_tokenizer(template=template, special=TEMPLATES[name])
    if name == "gemma3":
        tokenizer.bos_token = "<bos>"
    return tokenizer


def sampled(tokenizer, text, *, ended=True):
    """An action as a generator gives it."""
    tokens = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    if ended:
        return Action(text, (*tokens, tokenizer.eos_token_id), finish="end")
    return Action(text, tokens, finish="length")


def histories(chat, turns, **settings):
    """The ids after each turn's observation, and after its action."""
    ids, last, prefixes = (), None, []
    for seen, said in turns:
        observation = chat.open(seen) if last is None else chat.continuation(seen, last)
        last = sampled(chat.tokenizer, said, **settings)
        prefixes += [ids := (*ids, *observation.tokens), ids := (*ids, *last.tokens)]
    return prefixes


def rendered(tokenizer, turns, system, *, prompt):
    """The template's own ids of the whole conversation."""
    messages = [{"role": "system", "content": system}] if system else []
    for seen, said in turns:
        messages += [{"role": "user", "content": seen}]
        messages += [{"role": "assistant", "content": said}] if said is not None else []
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_rendering_qwen3_again_would_break_the_prefix_and_ours_keeps_it():
    tokenizer = tokenizer_of("qwen3")
    first, second = ("Colour?", THOUGHT), ("Sure?", None)
    sampled_so_far = (
        *rendered(tokenizer, [(first[0], None)], None, prompt=True),
        *sampled(tokenizer, THOUGHT).tokens,
    )
    again = rendered(tokenizer, [first, second], None, prompt=True)
    assert again[: len(sampled_so_far)] != sampled_so_far
    ours = histories(ChatFormat(tokenizer), [first, ("Sure?", "")])
    assert ours[1] == sampled_so_far
    assert ours[2][: len(sampled_so_far)] == sampled_so_far


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_action_that_was_cut_or_stopped_gets_its_closing_marker_in_the_continuation(name):
    tokenizer = tokenizer_of(name)
    chat = ChatFormat(tokenizer)
    cut = histories(chat, TURNS, ended=False)
    whole = histories(chat, TURNS)
    assert cut[-2] == whole[-2]
    assert cut[1] == whole[1][:-1]
    assert cut[2][len(cut[1])] == tokenizer.eos_token_id
    tokens = sampled(tokenizer, "done.", ended=False).tokens
    seen = {
        chat.continuation("go", Action("done.", tokens, finish=finish)).tokens
        for finish in ("stop", "length")
    }
    assert len(seen) == 1 and seen.pop()[0] == tokenizer.eos_token_id


def test_a_marker_that_is_special_by_its_added_token_alone_ends_an_action():
    """Gemma 3's own tokenizer: <eos> is the end token, <end_of_turn> no named special token."""
    template = files("trl.chat_templates").joinpath("gemma3.jinja").read_text()
    tokenizer = byte_tokenizer(template=template, special=("<pad>", "<eos>", "<bos>"))
    tokenizer.bos_token = "<bos>"
    tokenizer.backend_tokenizer.add_special_tokens(
        [AddedToken(f"<{word}_of_turn>", special=True) for word in ("start", "end")]
    )
    marker = tokenizer.convert_tokens_to_ids("<end_of_turn>")
    chat = ChatFormat(tokenizer)
    assert chat.end_ids == {marker, tokenizer.eos_token_id}
    assert chat.decode((*tokenizer("ok")["input_ids"], marker)) == "ok"


def test_another_end_token_ends_an_action_and_the_marker_still_follows():
    """Base models of Qwen end with <|endoftext|>, their template with <|im_end|>."""
    tokenizer = tokenizer_of("qwen2_5")
    tokenizer.eos_token = "<|endoftext|>"
    marker = tokenizer.convert_tokens_to_ids("<|im_end|>")
    chat = ChatFormat(tokenizer)
    assert chat.end_ids == {marker, tokenizer.eos_token_id}
    last = Action("a", (50, tokenizer.eos_token_id))
    assert chat.continuation("go", last).tokens[0] == marker
    last = Action("a", (50, marker))
    assert chat.continuation("go", last).tokens[0] != marker


WORDED = (
    "{% for m in messages %}{{ '>' if m['role'] == 'user' else '' }}{{ m['content'] }}#;"
    "{% endfor %}"
)
"""No role of the system, and a sign that is an ordinary token after each message."""


def test_an_ordinary_token_may_end_an_action_and_the_rest_of_the_marker_still_follows():
    """The generation config names it, and the tokenizer another end token."""
    tokenizer = byte_tokenizer(template=WORDED)
    sign, rest = tokenizer.convert_tokens_to_ids(["#", ";"])
    chat = ChatFormat(tokenizer, model_end_ids=(sign,))
    assert chat.end_ids == {sign, tokenizer.eos_token_id} and chat.end_id == sign
    assert chat.continuation("go", Action("a", (50, sign))).tokens[:1] == (rest,)
    assert chat.continuation("go", Action("a", (50,))).tokens[:2] == (sign, rest)


def test_what_a_template_without_a_system_role_opens_with_is_left_out():
    template = "<|begin|>{% for m in messages %}{% if m['role'] == 'system' %}"
    template += "{{ raise_exception('no system') }}{% endif %}" + WORDED.removeprefix(
        "{% for m in messages %}"
    )
    tokenizer = byte_tokenizer(template=template, special=("<|pad|>", "<|end|>", "<|begin|>"))
    begin, a = tokenizer.convert_tokens_to_ids(["<|begin|>", "a"])
    assert ChatFormat(tokenizer).decode((begin, a)) == "a"


def test_of_an_action_its_last_token_is_remembered_and_whether_its_reasoning_is_open():
    remembered = ChatFormat.remembered
    assert remembered(Action("<think>\nab", (5, 6, 7))) == Action("<think>", (7,))
    assert remembered(Action("<think>\na</think>b", (5, 6))) == Action("", (6,))
    assert remembered(Action("", (5,))) == Action("", (5,))


@pytest.mark.parametrize("name", TEMPLATES)
def test_decoding_leaves_the_markers_out(name):
    tokenizer = tokenizer_of(name)
    chat = ChatFormat(tokenizer)
    assert chat.decode(sampled(tokenizer, "café\n ok ").tokens) == "café\n ok "


def test_plain_text_opens_with_the_system_prompt_and_closes_with_the_end_token():
    tokenizer = byte_tokenizer(template=None)
    chat = ChatFormat(tokenizer, system="Build.")
    steps = histories(chat, TURNS[:2])
    text = tokenizer.decode(list(steps[-1]))
    assert text == (
        'Build.\nWhat is seen?\nTwo red\nblocks, café.<|end|>And now: {"x": 1}?\nOne block.<|end|>'
    )
    assert histories(chat, TURNS[:2], ended=False)[2] == steps[2]


def test_a_template_that_drops_a_turn_or_is_missing_is_a_config_error():
    with pytest.raises(ConfigError, match=r"agents\.chat: no file nowhere\.jinja"):
        ChatFormat(byte_tokenizer(), chat="nowhere.jinja")
    template = "{{ messages[-1]['content'] }}<|assistant|>"
    with pytest.raises(ConfigError, match=r"agents\.chat: the template drops or repeats"):
        ChatFormat(byte_tokenizer(template=template))


def test_sampled_ids_are_never_tokenised_again():
    """With merges there are many ids for one text; random ids are rarely the tokenizer's own."""
    team = cast(merges=True, max_tokens=20, temperature=2.0)
    tokenizer = byte_tokenizer(merges=True)
    others = 0
    for tree in play(Notes(items=6), team):
        for node in tree.nodes[1:]:
            for agent, action in node.actions.items():
                inside = tree.history(node.index, agent).tokens
                before = len(tree.history(node.parent, agent).tokens)
                assert inside[before : before + len(action.tokens)] == action.tokens
                again = tokenizer(action.text, add_special_tokens=False)["input_ids"]
                others += tuple(again) != action.tokens[: len(again)]
    assert others > 0


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_quoted_special_token_stays_text(name):
    tokenizer = tokenizer_of(name)
    chat = ChatFormat(tokenizer, chat="auto")
    mark = TEMPLATES[name][1]
    quoted, plain = chat.open(f"it said {mark} loudly"), chat.open("it said no loudly")
    number = tokenizer.convert_tokens_to_ids(mark)
    assert quoted.tokens.count(number) == plain.tokens.count(number)
    assert mark in tokenizer.decode(quoted.tokens)
    after = chat.continuation(f"{mark}", Action("x", (tokenizer.eos_token_id,)))
    assert after.tokens.count(number) == chat.continuation(
        "y", Action("x", (tokenizer.eos_token_id,))
    ).tokens.count(number)


def with_template(name, special=QWEN):
    template = files("trl.chat_templates").joinpath(f"{name}.jinja").read_text()
    return byte_tokenizer(template=template, special=special)


def prompt_of(tokenizer, settings):
    chat = ChatFormat(tokenizer, **settings.chat_format | {"system": "You build."})
    return tokenizer.decode(chat.open("What is seen?").tokens)


DATED = {"llama3_1": "26 Jul 2024", "llama3_2": "26 Jul 2024", "gptoss": "2024-07-26"}


@pytest.mark.parametrize("name", DATED)
def test_a_template_is_told_the_same_date_on_every_day(name):
    tokenizer = with_template(name)
    assert f"ate: {DATED[name]}\n" in prompt_of(tokenizer, AgentSettings())
    assert f"{date.today():%Y}" not in prompt_of(tokenizer, AgentSettings())
    assert prompt_of(tokenizer, AgentSettings()).lstrip() == prompt_of(tokenizer, AgentSettings())


def test_another_date_is_a_setting():
    settings = AgentSettings.model_validate({"today": "2025-03-01"})
    assert "Today Date: 01 Mar 2025\n" in prompt_of(with_template("llama3_2"), settings)
    assert "Current date: 2025-03-01\n" in prompt_of(with_template("gptoss"), settings)
    assert AgentSettings.model_validate(settings.model_dump(mode="json")) == settings


def test_an_exported_template_keeps_the_date_and_no_thinking():
    tokenizer = with_template("llama3_2")
    settings = AgentSettings.model_validate({"today": "2025-03-01"})
    written = write_template(tokenizer, **settings.chat_format)
    assert "Today Date: 01 Mar 2025" in written


def test_thinking_is_off_where_the_config_says_so():
    settings = AgentSettings.model_validate({"template": {"enable_thinking": False}})
    tokenizer = with_template("qwen3")
    empty = "<think>\n\n</think>\n\n"
    assert prompt_of(tokenizer, settings).endswith(f"<|im_start|>assistant\n{empty}")
    assert not prompt_of(tokenizer, AgentSettings()).endswith(empty)
    chat = ChatFormat(tokenizer, **settings.chat_format)
    # every answer of a conversation is asked for without thoughts, and the prefix is kept
    steps = histories(chat, TURNS)
    assert tokenizer.decode(steps[-1]).count(empty) == len(TURNS)
    for before, after in pairwise(steps):
        assert after[: len(before)] == before


@pytest.mark.parametrize("name", ["paper/arxiv", "paper/tldr"])
def test_the_papers_writers_do_not_think(name):
    config = load_config(name)
    assert config.agents["*"].template == {"enable_thinking": False}


def test_an_argument_that_is_the_tokenizers_own_is_refused():
    with pytest.raises(ConfigError, match=r"^agents\.template\.tokenize: "):
        ChatFormat(with_template("qwen3"), template={"tokenize": True})


def test_a_prompt_with_the_agents_own_system_text_opens_as_the_agent_does() -> None:
    """Special tokens in it are special, as in every other context of the agent."""
    chat = ChatFormat(byte_tokenizer(), system="see<|end|>go")
    prompt = Observation("hi", system="see<|end|>go")
    assert chat.open_conversation(prompt) == chat.open("hi").tokens


def test_a_special_token_that_a_prompts_own_system_text_spells_stays_text() -> None:
    tokenizer = byte_tokenizer()
    chat = ChatFormat(tokenizer, system="build")
    tokens = chat.open_conversation(Observation("hi", system="see<|end|>go"))
    assert tokenizer.decode(tokens) == "<|system|>see<|end|>go<|user|>hi<|assistant|>"
    assert tokens.count(chat.end_id) == 0
