"""The embedded model: made once for a task, each draw from weights of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tiny import Notes

from colearn.errors import ConfigError
from colearn.models import embedded
from colearn.models.embedded_recipes import is_embedded
from colearn.models.load import load_tokenizer
from colearn.registry import task_class


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A warm start of two steps, in a cache of its own."""
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    short = replace(embedded.RECIPES["embedded-tiny"], steps=2, episodes=8)
    monkeypatch.setitem(embedded.RECIPES, "embedded-tiny", short)


VARIED = ("embedded-tiny-varied:1", "embedded-tiny-varied:2")


def game():
    return task_class("dpomdp")(problem="dec_tiger", opening="start", turn="{observation}")


def weights(path: Path):
    return load_file(path / "model.safetensors")["model.layers.0.mlp.up_proj.weight"]


def test_each_draw_has_weights_of_its_own_and_a_folder_that_is_kept():
    paths = [
        embedded.embedded_model(game(), f"embedded-tiny{draw}", "f") for draw in ("", ":1", ":2")
    ]
    assert len(set(paths)) == 3
    first, second, third = (weights(path) for path in paths)
    assert not first.equal(second) and not second.equal(third)
    stamp = (paths[1] / "model.safetensors").stat().st_mtime_ns
    assert embedded.embedded_model(game(), "embedded-tiny:1", "f") == paths[1]
    assert (paths[1] / "model.safetensors").stat().st_mtime_ns == stamp


def test_making_a_model_is_told_once(capsys):
    folder = embedded.embedded_model(game(), "embedded-tiny", "models.a.path")
    first, *progress = capsys.readouterr().err.splitlines()
    assert first == (
        f"note: makes the model 'embedded-tiny' for this task, once; it is kept in {folder}, and "
        "later runs of the task begin with it"
    )
    assert all(line.endswith(" s left") for line in progress)
    assert embedded.embedded_model(game(), "embedded-tiny", "models.a.path") == folder
    assert capsys.readouterr().err == ""


def test_an_untrained_model_has_its_initial_weights():
    """Of a standard deviation of 0.1; those of the warm start are others."""
    first = embedded.embedded_model(game(), "embedded-tiny-untrained:1", "f")
    taught = embedded.embedded_model(game(), "embedded-tiny:1", "f")
    assert not weights(first).equal(weights(taught))
    assert 0.095 < float(weights(first).std()) < 0.105


def test_a_hyphenated_action_is_one_token_and_so_is_it_after_a_space():
    path = embedded.embedded_model(game(), "embedded-tiny", "f")
    tokenizer = load_tokenizer(str(path), field="f")
    for text in ("open-left", " open-left", "hear-right", "listen"):
        assert len(tokenizer(text)["input_ids"]) == 1
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("embedded-tinny", "models.a.path: no embedded model 'embedded-tinny'; did you mean"),
        (
            "embedded-tiny:x",
            "models.a.path: 'x' is no number; write embedded-tiny, embedded-tiny:1",
        ),
        ("embedded-tiny:-1", "models.a.path: '-1' is no number; write embedded-tiny, "),
    ],
)
def test_an_unknown_name_is_one_line_with_the_remedy(name, line):
    with pytest.raises(ConfigError) as error:
        embedded.embedded_model(game(), name, "models.a.path")
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_a_task_without_legal_actions_cannot_have_one():
    line = r"^models\.a\.path: 'embedded' needs actions .* give task\.words.* add legal_action"
    with pytest.raises(ConfigError, match=line):
        embedded.embedded_model(Notes(), "embedded", "models.a.path")


def test_the_size_that_copies_says_words_of_its_prompt_from_the_beginning(monkeypatch):
    """Before it has learned anything a word that it was shown is likelier than one that it was
    not; each name stands in one prompt, so no habit can tell them apart."""
    import torch
    from transformers import AutoModelForCausalLM

    from colearn.rollout.agents import ChatFormat

    fresh = replace(
        embedded.RECIPES["embedded-copy"], steps=1, episodes=24, learning_rate=1e-9, drills=0.2
    )
    monkeypatch.setitem(embedded.RECIPES, "embedded-copy", fresh)
    task = task_class("search_parallel")(prompt="compact", people=12, towns=2)
    path = embedded.embedded_model(task, "embedded-copy", "f")
    tokenizer = load_tokenizer(str(path), field="f")
    model = AutoModelForCausalLM.from_pretrained(path)
    chat = ChatFormat(tokenizer)
    names = sorted({item.titles[0] for item in task.items("train")})
    ids = [tokenizer(f" {name}")["input_ids"][0] for name in names]
    shown = []
    for name in names:
        tokens = chat.open(f"rewrite trade of {name}").tokens
        with torch.no_grad():
            shown.append(model(torch.tensor([tokens])).logits[0, -1, ids].softmax(-1))
    own = torch.stack(shown).diagonal().mean().item()
    assert own > 1.5 / len(names)


def test_what_a_size_never_had_is_not_in_its_key():
    assert "copies" not in embedded.RECIPES["embedded"].key
    assert embedded.RECIPES["embedded-copy"].key["drills"] == 0.3


def answers(name: str, *turns: int) -> list[dict[str, dict[str, dict[str, int]]]]:
    """For each of the turns, by agent and observation: how often each action answered it in the
    episodes that warm-start the model."""
    recipe = replace(embedded.embedded_recipe(game(), name, "f"), episodes=200)
    counts: list[dict[str, dict[str, dict[str, int]]]] = [
        {agent: {} for agent in game().agents} for _ in turns
    ]
    for episode in embedded._play(game(), recipe, name, "f")[0]:
        for agent, said_in_turns in zip(game().agents, episode, strict=True):
            for turn, of_turn in zip(turns, counts, strict=True):
                if turn < len(said_in_turns):
                    prompt, said = said_in_turns[turn]
                    of_text = of_turn[agent].setdefault(prompt.text, {})
                    of_text[said] = of_text.get(said, 0) + 1
    return counts


def listening(counts: dict[str, dict[str, dict[str, int]]]) -> list[float]:
    return [
        said["listen"] / sum(said.values()) for texts in counts.values() for said in texts.values()
    ]


def test_varied_play_differs_by_agent_observation_and_draw_and_stays_legal():
    """Dirichlet(5, 5, 5): shares with mean 1/3 and deviation 0.12; of 200 draws 0.03 is noise."""
    ((plain,), (start, one), (_, two)) = (
        answers("embedded-tiny", 1),
        *(answers(name, 0, 1) for name in VARIED),
    )
    words = set(game().action_words("agent_1"))
    for play in (plain, one, two):
        assert all(set(said) == words for texts in play.values() for said in texts.values())
    assert all(abs(share - 1 / 3) < 0.12 for share in listening(plain))
    assert all(abs(share - 1 / 3) < 0.08 for share in listening(start)), "nothing is observed yet"
    shares = listening(one) + listening(two)
    assert len(shares) == 8 and max(shares) - min(shares) > 0.2
    assert one["agent_1"] != one["agent_2"] and one["agent_1"] != two["agent_1"]
    left, right = one["agent_1"].values()
    assert abs(left["listen"] - right["listen"]) > 10


def test_varied_play_needs_actions_that_can_be_listed():
    task = task_class("str_build")()
    with pytest.raises(
        ConfigError, match=r"^f: 'embedded-tiny-varied:3' needs a task with action_"
    ):
        embedded.embedded_model(task, "embedded-tiny-varied:3", "f")


def test_a_typing_error_is_no_name_of_the_hub_but_a_folder_is_a_folder(tmp_path, monkeypatch):
    """`embeded-copy` was looked for on the hub, with 22 lines of retries."""
    monkeypatch.chdir(tmp_path)
    for name in ("embeded-copy", "embedd-tiny:2", "enbedded-large"):
        assert is_embedded(name), name
    for name in ("gpt2", "Qwen/Qwen3-0.6B", "org/embedded-copy", "./embeded-copy", "copy"):
        assert not is_embedded(name), name
    (tmp_path / "embeded-copy").mkdir()
    assert not is_embedded("embeded-copy")
