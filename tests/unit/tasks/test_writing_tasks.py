import json
import math
import pickle
import sys
import types

import numpy as np
import pytest
from growth import is_linear

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.writing.arxiv import ArXiv
from colearn.tasks.writing.reward import score
from colearn.tasks.writing.task import WritingItem
from colearn.tasks.writing.text import (
    characters,
    compact,
    transition_kinds,
    transition_kinds_within,
    words_of,
)
from colearn.tasks.writing.tldr import TLDR
from colearn.tasks.writing.words import CONNECTORS, FILLERS, STOP_WORDS, TRANSITIONS

TASKS = pytest.mark.parametrize("kind", [TLDR, ArXiv])
VARIANTS = pytest.mark.parametrize("variant", ["paper", "comlrl"])


def text(count, different=None, start=0):
    """`count` words w000, w001, ..., again from the front after `different`: 5 count - 1
    characters, no stop words, no transitions."""
    return " ".join(f"w{start + n % (different or count):03d}" for n in range(count))


def play(task, first, second):
    rng = np.random.default_rng(0)
    state = task.reset(task.items("train")[0], rng)
    return task.step(state, dict(zip(task.agents, (first, second), strict=True)), rng)


# 10 words have 49 characters, 20 have 99: the second is 99/49 = 2.02 times as long, full marks.
TLDR_REWARDS = {
    "nothing": ("", "", 0, 0),
    "7 words are too few": (text(7), text(20), 0, 0),
    "257 words are too many": (text(100), text(257), 0, 0),
    # 49/49 = 1 < 1.1: bounds 0.5 only
    "equally long": (text(10), text(10), 0.5, 0.5),
    # 299/49 = 6.1 > 5
    "six times as long": (text(10), text(60), 0.5, 0.5),
    # diversity 10/10 = 1 < 1.3: 0.5 + 1
    "no new words": (text(10), text(20, 10), 1.5, 1.5),
    # diversity 16/10 = 1.6: 0.5 (1.6 - 1.3)/0.7; nothing shared, no transitions
    "some new words": (
        text(10),
        text(20, 16, start=500),
        1.5 + 0.5 * 0.3 / 0.7,
        1.5 + 0.5 * 0.3 / 0.7,
    ),
    # diversity 20/10 = 2, similarity 10/20 > 0.03: 0.5 + 1 + 0.5 + 0.6
    "all but transitions": (text(10), text(20), 2.6, 2.6),
    # 999/499 = 2.002, diversity 200/100, similarity 3/297: 0.6 (3/297)/0.03
    "hardly similar": (
        text(100),
        text(200, start=97),
        2 + 0.6 * (3 / 297) / 0.03,
        2 + 0.6 * (3 / 297) / 0.03,
    ),
    # 64/49: (64/49 - 1.1)/0.5; diversity 13/10 is just in range and earns 0
    "a little too short": (
        text(10),
        text(13),
        0.5 + (64 / 49 - 1.1) / 0.5 + 0 + 0.6,
        0.5 + (64 / 49 - 1.1) / 0.5 + 0 + 0.6,
    ),
    # 199/49: (5 - 199/49)/1.8
    "a little too long": (
        text(10),
        text(40),
        0.5 + (5 - 199 / 49) / 1.8 + 0.5 + 0.6,
        0.5 + (5 - 199 / 49) / 1.8 + 0.5 + 0.6,
    ),
    # (5 * 19 + 7)/49 = 2.08; one kind: 0.4 * 0.6 ln 2, and 0.4 * 0.4
    "one transition": (
        text(10),
        text(19) + " however",
        2.6 + 0.4 * 0.6 * math.log(2),
        2.6 + 0.4 * 0.4,
    ),
    # (5 * 19 + 7)/(5 * 9 + 7) = 1.96; 20/10 different, 9/21 shared; comlrl reads the second only
    "a transition in the first": (
        text(9) + " however",
        text(19) + " picture",
        2.6 + 0.4 * 0.6 * math.log(2),
        2.6,
    ),
    # (5 * 15 + 33)/49 = 2.2; 0.6 ln 6 = 1.08 is cut to 1, and 0.4 (0.4 + 0.05 * 4)
    "five transitions": (
        text(10),
        text(15) + " however thus indeed overall unless",
        3.0,
        2.6 + 0.4 * 0.6,
    ),
    # 12 different content words are 1.2 of 10, and with the 8 stop words 20 are 2 of 10
    "stop words as new words": (text(10), text(12) + " the of and to in it we us", 1.5, 2.6),
    # comlrl finds "last" in lasting: 0.4 * 0.4
    "a transition inside a word": (text(10), text(19) + " lasting", 2.6, 2.6 + 0.4 * 0.4),
    # signs are words by white space: 0.5; 19/15 = 1.27: (19/15 - 1.1)/0.5; no word to compare
    "punctuation": (
        ". " * 7 + ".",
        "! " * 9 + "!",
        0.5 + (19 / 15 - 1.1) / 0.5,
        0.5 + (19 / 15 - 1.1) / 0.5,
    ),
    # 49/49 once the spaces are one; as they are (49 + 49)/49 = 2: then diversity 10/10 < 1.3
    "spaces do not lengthen": (text(10), text(10) + " " * 49, 0.5, 1.5),
}

# 130 words have 649 characters.
ARXIV_REWARDS = {
    "nothing": ("", "", 0, 0),
    "127 words are too few": (text(127), text(130), 0, 0),
    "257 words are too many": (text(200), text(257), 0, 0),
    # 649/649 = 1: full in paper, (1 - 0.8)/0.5 in comlrl; 0.5 + 0.6 for the same words
    "the same text": (text(130), text(130), 2.6, 0.5 + 0.4 + 0.5 + 0.6),
    # 779/649 = 1.2003; diversity 156/130 = 1.2, similarity 130/156
    "a fifth longer": (
        text(130),
        text(156),
        2.6,
        0.5 + (779 / 649 - 0.8) / 0.5 + 0.5 + 0.6,
    ),
    # 899/649 = 1.385; diversity 18/13 = 1.385: 0.5 (1.7 - 18/13)/0.4
    "longer by 0.385": (
        text(130),
        text(180),
        0.5 + (1.5 - 899 / 649) / 0.2 + 0.5 * (1.7 - 18 / 13) / 0.4 + 0.6,
        0.5 + 1 + 0.5 * (1.7 - 18 / 13) / 0.4 + 0.6,
    ),
    # 999/649 = 1.539 > 1.5
    "longer by half": (text(130), text(200, 130), 0.5, 2.6),
    # 1199/649 = 1.847: (2 - 1199/649)/0.4
    "much longer": (text(130), text(240, 130), 0.5, 0.5 + (2 - 1199 / 649) / 0.4 + 0.5 + 0.6),
    # 649/749 = 0.866; diversity 130/150 = 0.867
    "shorter": (
        text(150),
        text(130),
        0.5 + (649 / 749 - 0.8) / 0.2 + 0.5 + 0.6,
        0.5 + (649 / 749 - 0.8) / 0.5 + 0.5 + 0.6,
    ),
    # 649/999 = 0.65 < 0.8
    "much shorter": (text(200), text(130), 0.5, 0.5),
    # diversity 78/130 = 0.6: 0.5 (0.6 - 0.5)/0.2
    "fewer words": (text(130), text(130, 78), 0.5 + 1 + 0.25 + 0.6, 0.5 + 0.4 + 0.25 + 0.6),
    # diversity 52/130 = 0.4 < 0.5
    "far fewer words": (text(130), text(130, 52), 1.5, 0.5 + 0.4),
    # 13 shared of 247: 0.6 (13/247)/0.23
    "hardly similar": (
        text(130),
        text(130, start=117),
        2 + 0.6 * (13 / 247) / 0.23,
        1.4 + 0.6 * (13 / 247) / 0.23,
    ),
    # (5 * 127 + 19)/649 = 1.008; 0.4 * 0.4 ln 4, and 0.4 (0.4 + 0.05 * 2)
    "three transitions": (
        text(130),
        text(127) + " however indeed thus",
        2.6 + 0.4 * 0.4 * math.log(4),
        0.5 + (654 / 649 - 0.8) / 0.5 + 0.5 + 0.6 + 0.4 * 0.5,
    ),
    # (5 * 118 + 97)/649 = 1.059; 0.4 ln 13 = 1.03 is cut to 1, and 0.4 (0.4 + 0.05 * 11)
    "twelve transitions": (
        text(130),
        text(118) + " " + " ".join(CONNECTORS),
        3.0,
        0.5 + (687 / 649 - 0.8) / 0.5 + 0.5 + 0.6 + 0.4 * 0.95,
    ),
    # "xhen" and "cexx" put together hold "hence"; 129 of 131 are shared
    "a transition across the seam": (
        text(129) + " xhen",
        "cexx " + text(129),
        2.6,
        0.5 + 0.4 + 0.5 + 0.6 + 0.4 * 0.4,
    ),
}


@pytest.mark.parametrize("first, second, paper, comlrl", TLDR_REWARDS.values(), ids=TLDR_REWARDS)
def test_tldr_rewards_of_both_variants_match_the_numbers_by_hand(first, second, paper, comlrl):
    assert play(TLDR(), first, second).reward == pytest.approx(paper, abs=1e-12)
    assert play(TLDR(variant="comlrl"), first, second).reward == pytest.approx(comlrl, abs=1e-12)


@pytest.mark.parametrize("first, second, paper, comlrl", ARXIV_REWARDS.values(), ids=ARXIV_REWARDS)
def test_arxiv_rewards_of_both_variants_match_the_numbers_by_hand(first, second, paper, comlrl):
    assert play(ArXiv(), first, second).reward == pytest.approx(paper, abs=1e-12)
    assert play(ArXiv(variant="comlrl"), first, second).reward == pytest.approx(comlrl, abs=1e-12)


def test_coherence_follows_the_papers_logarithm_and_the_peers_steps():
    tldr, arxiv, peer = TLDR().rules, ArXiv().rules, ArXiv(variant="comlrl").rules
    assert [tldr.coherence(k) for k in (0, 4, 5, 12)] == pytest.approx([0, 0.6 * math.log(5), 1, 1])
    assert [arxiv.coherence(k) for k in (0, 11, 12)] == pytest.approx([0, 0.4 * math.log(12), 1])
    assert [peer.coherence(k) for k in (0, 1, 2, 12)] == pytest.approx([0, 0.4, 0.45, 0.95])


def test_the_metrics_are_the_parts_of_the_reward_and_its_share_of_the_most():
    task = TLDR()
    outcome = play(task, text(10), text(19) + " however")
    metrics = task.metrics(outcome.state)
    coherence = 0.4 * 0.6 * math.log(2)
    assert metrics == pytest.approx(
        {
            "score": (2.6 + coherence) / 3,
            "bounds": 0.5,
            "length": 1,
            "diversity": 0.5,
            "style": 0.6,
            "coherence": coherence,
        }
    )


@TASKS
def test_an_episode_is_one_turn(kind):
    task = kind()
    assert task.horizon == 1 and play(task, "", "").done


@VARIANTS
@TASKS
@pytest.mark.parametrize("data", ["packaged", "generated"])
def test_the_reference_earns_the_most_on_every_text(kind, variant, data):
    task = kind(variant=variant, data=data)
    rng = np.random.default_rng(0)
    for item in (*task.items("train"), *task.items("test")):
        state = task.reset(item, rng)
        reward = task.step(state, task.reference_actions(state), rng).reward
        assert reward == pytest.approx(task.reward_range[1], abs=1e-9)


@VARIANTS
@TASKS
@pytest.mark.parametrize("words", [(1, 48), (64, 256), (100, 1000)])
@pytest.mark.parametrize("own", ["明日は雨が降るでしょう", "a an the", "tiny cat sat " * 99])
def test_the_reference_earns_the_most_where_the_bounds_have_room(
    kind, variant, words, own, tmp_path
):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"own": own}) for _ in range(2)))
    task = kind(variant=variant, words=words, data=str(file), field="own")
    state = task.reset(task.items("test")[0], np.random.default_rng(0))
    reward = play(task, *task.reference_actions(state).values()).reward
    assert reward == pytest.approx(task.reward_range[1], abs=1e-9)


def test_the_most_is_three_and_in_the_peers_formula_2_98():
    for kind in (TLDR, ArXiv):
        assert kind().reward_range == pytest.approx((0, 3))
        assert kind(variant="comlrl").reward_range == pytest.approx((0, 2.98))


def test_every_kind_has_its_own_entries_in_lower_case():
    entries = [entry for kind in TRANSITIONS.values() for entry in kind]
    assert len(TRANSITIONS) == 12 and min(map(len, TRANSITIONS.values())) >= 17
    assert len(set(entries)) == len(entries)
    assert all(entry == entry.lower().strip() for entry in entries)


def test_the_connectors_are_one_word_of_each_kind_and_none_is_a_stop_word():
    assert len(CONNECTORS) == 12 and not STOP_WORDS & set(CONNECTORS)
    assert {frozenset(transition_kinds([word])) for word in CONNECTORS} == {
        frozenset([kind]) for kind in TRANSITIONS
    }


def test_fillers_are_content_of_five_to_twelve_letters_and_no_transitions():
    assert len(set(FILLERS)) == len(FILLERS) >= 25
    assert all(5 <= len(word) <= 12 for word in FILLERS) and not STOP_WORDS & set(FILLERS)
    assert not transition_kinds(FILLERS)


@pytest.mark.parametrize(
    "said, whole, within",
    [
        ("However, it rained.", {"contrast"}, {"contrast"}),
        ("FOR  EXAMPLE: rain", {"examples"}, set()),
        ("for example rain", {"examples"}, {"examples"}),
        ("a lasting person", set(), {"sequence", "cause_effect"}),
        ("it rains, i.e. it pours", {"explanation"}, {"explanation"}),
        ("for", set(), set()),
        ("on the other", set(), set()),
        ("on the other hand", {"contrast"}, {"contrast"}),
    ],
)
def test_transitions_are_whole_words_or_in_the_peers_way_substrings(said, whole, within):
    assert transition_kinds(words_of(said)) == whole
    assert transition_kinds_within(said) == within


def test_white_space_counts_as_one_character():
    assert characters("  a \n\n b\t") == 3


@VARIANTS
@TASKS
def test_any_text_earns_a_reward_within_the_range(kind, variant):
    said = (
        *("", " \n\t ", "word " * 200, "!?. " * 150, "\x00\x1b[31m \x07 " * 60),
        *("日本語 " * 140, "ﬀ ½ ٣ İ ß " * 30, "the " * 140, text(130), text(250)),
    )
    task = kind(variant=variant)
    low, high = task.reward_range
    for first in said:
        for second in said:
            assert low <= play(task, first, second).reward <= high + 1e-9


@VARIANTS
def test_the_cost_is_linear_in_the_length(variant):
    rules = TLDR(variant=variant, words=(1, 10**7)).rules

    def scored(length):
        first = "on the other one " * length
        score(rules, first, first + " and again in the end of some" * length)

    assert is_linear(scored, 1000)


def test_tldr_prompts_are_the_papers():
    task = TLDR()
    state = task.reset(type(task.items("train")[0])("My {text} post"), np.random.default_rng(0))
    assert task.observe(state, "summary") == (
        "Create a concise summary response to this post.\n\nQuery: My {text} post\n\n"
        "Instructions: Provide a brief and focused summary in a few sentences"
    )
    assert task.observe(state, "elaboration") == (
        "Create a detailed summary response to this post.\n\nQuery: My {text} post\n\n"
        "Instructions: You should use transition words to improve flow"
    )
    peer = TLDR(variant="comlrl")
    assert "facts" in peer.observe(state, "summary")
    assert "varied words" in peer.observe(state, "elaboration")


@VARIANTS
def test_arxiv_prompts_are_the_papers(variant):
    task = ArXiv(variant=variant)
    state = task.reset(type(task.items("train")[0])("We prove it."), np.random.default_rng(0))
    opening = (
        "Based on the following scientific abstract, expand the content for the introduction "
        "section.\n\nAbstract: We prove it.\n\nInstructions:\n"
    )
    assert task.observe(state, "background") == opening + (
        "- There is another agent that will provide the method and implications\n"
        "- You just need to focus on the background and motivation\n"
        "- Avoid repeating methodology and implications content"
    )
    assert task.observe(state, "method") == opening + (
        "- There is another agent that will provide the background and motivation\n"
        "- You just need to focus on the method and implications\n"
        "- Avoid repeating background and motivation content"
    )


def test_the_compact_prompt_is_the_agent_and_the_lower_case_words():
    task = TLDR(prompt="compact")
    state = task.reset(type(task.items("train")[0])("Don't  stop,\nBob!"), np.random.default_rng(0))
    assert task.observe(state, "summary") == "summary don t stop bob"
    assert compact("🙂\n?!") == "🙂 ?!"


@TASKS
@pytest.mark.parametrize("prompt", ["full", "compact"])
def test_legal_actions_repeat_with_the_generator_and_keep_the_bounds(kind, prompt):
    task = kind(prompt=prompt, words=(4, 40))
    lengths = set()
    for seed in range(50):
        item = task.items("train")[seed % 32]
        state = task.reset(item, np.random.default_rng(0))
        said = [
            task.legal_action(state, task.agents[0], np.random.default_rng(seed)) for _ in range(2)
        ]
        own = set((compact(item.text) if prompt == "compact" else item.text).split())
        assert said[0] == said[1] and set(said[0].split()) <= own | set(CONNECTORS)
        lengths.add(len(said[0].split()))
    assert min(lengths) >= 4 and max(lengths) <= 40 and len(lengths) > 15


@pytest.mark.parametrize(
    ("kind", "variant", "prompt", "data"),
    [
        (TLDR, "paper", "full", "packaged"),
        (TLDR, "comlrl", "compact", "generated"),
        (ArXiv, "comlrl", "full", "packaged"),
        (ArXiv, "paper", "compact", "generated"),
    ],
)
def test_every_way_of_playing_keeps_the_contract(kind, variant, prompt, data):
    task = kind(variant=variant, prompt=prompt, data=data)
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)
    check_task(
        task, seeds=(0,), episodes=1, actions=lambda s, agent, _: task.reference_actions(s)[agent]
    )


@TASKS
def test_packaged_texts_are_forty_different_ones(kind):
    task = kind()
    texts = [item.text for split in ("train", "test") for item in task.items(split)]
    assert [len(task.items(split)) for split in ("train", "test")] == [32, 8]
    assert len(set(texts)) == 40 and all(40 <= len(words.split()) <= 120 for words in texts)


@TASKS
def test_generated_texts_repeat_and_share_a_small_vocabulary(kind):
    task, again = kind(data="generated"), kind(data="generated")
    splits = [[item.text for item in task.items(split)] for split in ("train", "test")]
    assert splits[0] == [item.text for item in again.items("train")]
    assert [len(texts) for texts in splits] == [256, 64] and not set(splits[0]) & set(splits[1])
    train, test = ({word for own in texts for word in words_of(own)} for texts in splits)
    assert test <= train and len(train) < 160


def test_a_file_gives_a_tenth_to_the_test_split(tmp_path):
    file = tmp_path / "posts.jsonl"
    file.write_text(
        "\n".join(json.dumps({"prompt": f"post {n}", "n": n}) for n in range(20)) + "\n"
    )
    task = TLDR(data=str(file))
    test = [item.text for item in task.items("test")]
    assert len(test) == 2
    trained = [f"post {n}" for n in range(20) if f"post {n}" not in test]
    assert [item.text for item in task.items("train")] == trained
    assert pickle.loads(pickle.dumps(task)).items("test") == task.items("test")


@pytest.mark.parametrize(
    "lines, field, line",
    [
        ('{"text": "a"}\n{"text": "b"}', None, "task.field: line 1 of FILE has text; 'prompt' is"),
        ('{"prompt": "a"}\n[1]', None, "task.field: line 2 of FILE is no object; 'prompt' is"),
        ('{"text": "a"}\n{"text": " "}', "text", "task.data: 'text' of line 2 of FILE is"),
        ("", None, "task.data: FILE has 0 text(s); add some, 2 at least"),
    ],
)
def test_a_bad_file_is_one_line_with_the_row(lines, field, line, tmp_path):
    file = tmp_path / "posts.jsonl"
    file.write_text(lines)
    with pytest.raises(ConfigError) as caught:
        TLDR(data=str(file), field=field)
    assert str(caught.value).startswith(line.replace("FILE", str(file)))
    assert "\n" not in str(caught.value)


@TASKS
def test_the_hub_is_streamed_and_cut_into_the_papers_slices(kind, monkeypatch):
    asked = []

    def load_dataset(name, **settings):
        asked.append((name, settings))
        return ({"prompt": f"text {n}", "abstract": f"text {n}"} for n in range(5000))

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    task = kind(data="hub")
    assert asked == [(kind.source.hub, {"split": "train", "streaming": True})]
    assert [item.text for item in task.items("train")] == [f"text {n}" for n in range(1000)]
    assert [item.text for item in task.items("test")] == [f"text {n}" for n in range(1000, 1100)]


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"variant": "papr"}, "task.variant: unknown value 'papr'; did you mean 'paper'?"),
        ({"data": "huub"}, "task.data: unknown value 'huub'; did you mean 'hub'? or the path of"),
        ({"data": 3}, "task.data: must be one of packaged, generated, hub or a path, got 3"),
        ({"data": "/no/such.jsonl"}, "task.data: cannot read /no/such.jsonl ("),
        ({"field": "text"}, "task.field: 'packaged' data has no columns; leave it out"),
        ({"data": "hub", "field": ""}, "task.field: must be the name of a column, got ''"),
        ({"words": 8}, "task.words: must be the fewest and the most words of an answer, got 8"),
        ({"words": [0, 8]}, "task.words: must be the fewest"),
        ({"words": [9, 8]}, "task.words: must be the fewest"),
        ({"words": [True, 8]}, "task.words: must be the fewest"),
    ],
)
def test_a_bad_setting_is_one_line_with_the_remedy(settings, line):
    with pytest.raises(ConfigError) as caught:
        TLDR(**settings)
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_an_item_is_named_by_its_first_words():
    assert str(WritingItem("one two\n\nthree")) == "one two three"
    named = str(WritingItem("word " * 100))
    assert named.startswith("word word") and named.endswith(" ...") and len(named) <= 100
