import csv
from pathlib import Path

import numpy as np
import pytest

from colearn.errors import ConfigError
from colearn.tasks.blocks import cell_name, parse
from colearn.tasks.str_build import StrBuild, StringItem

LETTER = StringItem("L")
"""In the large font: 9 target cells, (0, 0..4) and (1..4, 0), with 8 pairs; 16 cells around."""

CSV = Path(__file__).parents[3] / "shared" / "data" / "minecraft" / "str_build.csv"


def say(*commands):
    return "\n".join(f"/setblock {x} {y} 0 {block}" for x, y, block in commands)


def play(task, first="", second="", item=LETTER):
    rng = np.random.default_rng(0)
    return task.step(task.reset(item, rng), {"builder_1": first, "builder_2": second}, rng)


def full_letter(same):
    """The whole of L as the checkerboard, but for `same` end blocks like their neighbour."""
    first = say(*((0, y, "stone") for y in (0, 2, 4)), *((x, 0, "stone") for x in (2, 4)))
    second = say(*((0, y, "obsidian") for y in (1, 3)), *((x, 0, "obsidian") for x in (1, 3)))
    over = [(4, 0, "obsidian"), (0, 4, "obsidian")][:same]
    second += "\n" + say(*over)
    return first, second


ALL_STONE = say(*((0, y, "stone") for y in range(5)), *((x, 0, "stone") for x in range(1, 5)))

REWARDS = {
    "nothing": ("", "", 0, -0.5),
    "all of one texture": (ALL_STONE, "", 2 - 8 / 16, 2 - 1 - 0.5),
    "one block outside": (say((4, 4, "stone")), "", -1.5 / 9, -1.5 / 16 - 0.5),
    "a pair of two textures": (say((0, 0, "oak_planks"), (0, 1, "stone")), "", 4 / 9, 4 / 9 - 0.25),
    "three pairs, one of one texture": (
        say((0, 0, "stone"), (1, 0, "stone")),
        say((2, 0, "obsidian"), (3, 0, "white_concrete")),
        8 / 9 - 1 / 6,
        8 / 9 - 1 / 3 - 0.25,
    ),
    "the later agent overwrites": (
        say((0, 0, "stone"), (0, 1, "stone")),
        say((0, 0, "obsidian")),
        4 / 9,
        4 / 9 - 0.5,
    ),
    "the later agent clears": (say((0, 0, "stone")), say((0, 0, "air")), 0, -0.5),
    "pairs outside the target count": (
        say((0, 1, "stone"), (1, 1, "stone")),
        "",
        2 / 9 - 1.5 / 9 - 1 / 2,
        2 / 9 - 1.5 / 16 - 1 - 0.5,
    ),
    "blocks that do not touch": (
        say((0, 0, "stone"), (0, 2, "oak_planks")),
        say((2, 0, "obsidian"), (4, 0, "white_concrete")),
        8 / 9,
        8 / 9,
    ),
    "everything but two kinds": (*full_letter(0), 2, 1.5),
    "one wrong pair of eight": (*full_letter(1), 2 - 1 / 16, 2 - 1 / 8 - 0.5),
    "two wrong pairs of eight": (*full_letter(2), 2 - 2 / 16, 2 - 2 / 8 - 0.5),
}


@pytest.mark.parametrize("first, second, paper, comlrl", REWARDS.values(), ids=REWARDS)
def test_rewards_of_both_variants_match_the_numbers_by_hand(first, second, paper, comlrl):
    for variant, raw in (("paper", paper), ("comlrl", comlrl)):
        outcome = play(StrBuild(variant=variant), first, second)
        assert outcome.state.reward == pytest.approx(raw, abs=1e-12)
        assert outcome.reward == pytest.approx(raw - 2, abs=1e-12)


def test_the_shift_is_a_setting_and_moves_the_range():
    task = StrBuild(reward_shift=0, strings=["L"], test_strings=["I"])
    assert play(task, ALL_STONE).reward == pytest.approx(1.5)
    assert task.reward_range == pytest.approx((-1.5 * 16 / 9 - 0.5, 2))
    assert StrBuild(variant="comlrl").reward_range == (-5, 0)


def test_an_episode_is_done_only_above_1_9():
    assert play(StrBuild(), *full_letter(0)).done
    assert play(StrBuild(), *full_letter(1)).done  # 1.9375
    assert not play(StrBuild(), *full_letter(2)).done  # 1.875


def test_metrics_are_those_of_the_last_turn():
    task = StrBuild()
    outcome = play(task, say((0, 1, "stone"), (1, 1, "stone")) + "\nhello", "and bye")
    assert task.metrics(outcome.state) == pytest.approx(
        {
            "score": -4 / 9,
            "iou": 1 / 10,
            "coverage": 1 / 9,
            "extra": 1,
            "adjacency": 1,
            "rejected": 2,
        }
    )


def test_every_turn_starts_from_an_empty_world():
    task, rng = StrBuild(), np.random.default_rng(0)
    state = play(task, *full_letter(2)).state
    after = task.step(state, {"builder_1": "", "builder_2": say((4, 4, "obsidian"))}, rng).state
    assert [block.cell for block in after.blocks] == [(4, 4)]
    assert after.turn == 2


def test_the_target_of_ICML_has_46_of_130_cells():
    rows = StrBuild().rows(StringItem("ICML"))
    assert (len(rows), {len(row) for row in rows}) == (5, {26})
    assert "".join(rows).count("#") == 46
    assert StrBuild(font="small").rows(StringItem("IC")) == ("###.###", ".#..#..", "###.###")


def test_every_character_of_a_font_looks_different():
    characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    for font in ("large", "small"):
        task = StrBuild(font=font)
        assert len({task.rows(StringItem(character)) for character in characters}) == 36


@pytest.mark.parametrize(("font", "agents"), [("large", 1), ("large", 2), ("small", 3)])
def test_the_reference_earns_the_maximum_for_every_string(font, agents):
    task, rng = StrBuild(font=font, agents=agents), np.random.default_rng(0)
    texts = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "ICML", "CLIM", "LLM"]
    for item in map(StringItem, texts):
        outcome = task.step(task.reset(item, rng), task.reference_actions(item), rng)
        assert outcome.state.reward == 2 and outcome.reward == 0 and outcome.done


def test_the_reference_earns_the_maximum_in_comlrl_on_the_papers_strings():
    for font in ("large", "small"):
        task, rng = StrBuild(variant="comlrl", font=font), np.random.default_rng(0)
        for item in (*task.items("train"), *task.items("test")):
            outcome = task.step(task.reset(item, rng), task.reference_actions(item), rng)
            assert outcome.state.reward == 2


def test_bullets_fences_prefixes_and_trailing_words_are_tolerated():
    text = (
        "```mcfunction\n- /setblock 0 0 0 minecraft:stone\n  2) /setblock 0 1 0 stone replace\n"
        "* /setblock 0 2 0 oak_planks\n\n```"
    )
    state = play(StrBuild(), text).state
    assert [block.cell for block in state.blocks] == [(0, 0), (0, 1), (0, 2)]
    assert state.rejected == 0


@pytest.mark.parametrize(
    "line",
    [
        "Sure, here you go:",
        "/fill 0 0 0 1 1 0 stone",
        "setblock 0 0 0 stone",
        "/setblock ~0 0 0 stone",
        "/setblock 0 0 stone",
        "/setblock 0 0 1 stone",
        "/setblock -1 0 0 stone",
        "/setblock 0 5 0 stone",
        "/setblock 99999999999999999999 0 0 stone",
        "/setblock 0 0 0 obsidian",
        "/setblock 0 0 0 STONE",
        "/setblock \u0660 0 0 stone",
        "0 0 stone",
    ],
)
def test_any_other_line_is_rejected_alone_and_counted(line):
    state = play(StrBuild(), f"/setblock 0 1 0 stone\n{line}\n/setblock 0 2 0 air").state
    assert [block.cell for block in state.blocks] == [(0, 1)]
    assert state.rejected == 1


def test_commands_beyond_the_limit_are_rejected_and_invalid_lines_do_not_use_it_up():
    task = StrBuild(max_commands=5)
    assert task.limit == 2 and StrBuild().limit == 150 and StrBuild(agents=3).limit == 100
    state = play(task, "hm\n" + say((0, 0, "stone"), (0, 1, "stone"), (0, 2, "stone"))).state
    assert [block.cell for block in state.blocks] == [(0, 0), (0, 1)]
    assert state.rejected == 2


def test_the_compact_form_takes_short_and_long_commands():
    task = StrBuild(prompt="compact")
    state = play(
        task, "a1 stone\n- a2 oak_planks\n/setblock 0 2 0 stone\na4\nj1 stone\n0 0 stone"
    ).state
    assert [block.cell for block in state.blocks] == [(0, 0), (0, 1), (0, 2)]
    assert state.rejected == 3


def test_cells_are_named_as_on_a_chess_board_past_column_z_too():
    names = [cell_name(cell) for cell in ((0, 0), (25, 2), (26, 4), (53, 0))]
    assert names == ["a1", "z3", "aa5", "bb1"]
    commands, rejected = parse(
        "aa5 stone\nbb1 stone", size=(54, 5), allowed=("stone",), limit=9, short=True
    )
    assert ([cell for cell, _ in commands], rejected) == ([(26, 4), (53, 0)], 0)


def test_the_compact_prompt_shows_the_grid_once_in_plain_words():
    task = StrBuild(prompt="compact", font="small", max_commands=12)
    item, rng = StringItem("H"), np.random.default_rng(0)
    state = task.reset(item, rng)
    assert task.observe(state, "builder_1") == (
        "grid 3 3\na3 . c3\na2 b2 c2\na1 . c1\nyou builder_1 blocks oak_planks stone max 6"
    )
    actions = {
        "builder_1": "a1 stone\nb1 stone",
        "builder_2": "a2 obsidian\nc1 obsidian\nc2 obsidian",
    }
    state = task.step(state, actions, rng).state
    # 4 of 7 covered, 1 extra, 4 pairs of which (0,0)-(1,0) and (2,0)-(2,1) match.
    assert state.reward == pytest.approx(8 / 7 - 1.5 / 7 - 2 / 4 / 2)
    assert task.observe(state, "builder_2") == "reward 0.75 missing b2 a3 c3 extra b1"


def test_the_full_prompt_is_the_papers_and_names_only_ones_own_blocks():
    task = StrBuild()
    text = task.observe(task.reset(LETTER, np.random.default_rng(0)), "builder_2")
    assert text.startswith("You are Player 2 in a 2-person Minecraft building team.")
    assert "#....\n#....\n#....\n#....\n#####\n" in text
    assert "- from: [0, 0, 0]\n- to: [4, 4, 0]" in text
    assert "- white_concrete\n- obsidian\n- air" in text
    assert "oak_planks" not in text and "At most" not in text
    assert text.endswith("Format: /setblock <x> <y> <z> <block>")


def test_comlrl_hides_the_grid_and_every_line_about_it():
    task = StrBuild(variant="comlrl")
    state = task.reset(LETTER, np.random.default_rng(0))
    assert "#" not in task.observe(state, "builder_1")


def test_feedback_by_position_lists_what_is_missing_and_what_is_extra():
    task = StrBuild(strings=["L"])
    state = play(task, ALL_STONE.replace("0 4 0", "1 4 0")).state
    text = task.observe(state, "builder_1")
    assert "Turn 2 of 4." in text
    assert "'#' positions that are still empty: (0, 4, 0).\n" in text
    assert "Blocks outside the target: (1, 4, 0).\n" in text
    assert text == task.observe(state, "builder_2")


def test_feedback_by_position_of_comlrl_lists_all_letter_positions():
    task = StrBuild(variant="comlrl")
    text = task.observe(play(task, ALL_STONE).state, "builder_2")
    assert text.count(", 0)") == 9
    assert "Choose about 1/2" in text and "white_concrete, obsidian, air" in text


@pytest.mark.parametrize("prompt", ["full", "compact"])
@pytest.mark.parametrize("variant", ["paper", "comlrl"])
def test_an_observation_never_shows_what_the_other_agent_wrote(variant, prompt):
    task = StrBuild(variant=variant, prompt=prompt)
    said = "my secret plan\n/setblock {x} 0 0 {block}\n/setblock 3 0 0 {block}"
    seen = [
        task.observe(play(task, "", said.format(x=1, block=block)).state, "builder_1")
        for block in ("obsidian", "white_concrete")
    ]
    assert seen[0] == seen[1]
    for word in ("secret", "obsidian", "setblock 1 0 0", "builder_2"):
        assert word not in seen[0]


def test_critics_are_told_turn_and_last_raw_reward():
    task = StrBuild()
    start = task.reset(LETTER, np.random.default_rng(0))
    assert task.global_info(start) == (
        "You are at turn = 1 over a 4-turn episode.\nYour last-turn reward is 0.00 / 2.00."
    )
    assert "turn = 2 over" in task.global_info(play(task, ALL_STONE).state)
    assert "1.50 / 2.00" in task.global_info(play(task, ALL_STONE).state)


def test_random_actions_are_legal_and_repeat_with_the_generator():
    for prompt in ("full", "compact"):
        task = StrBuild(prompt=prompt, max_commands=12)
        for agent, number in (("builder_1", 0), ("builder_2", 1)):
            said = [
                task.random_actions(LETTER, agent, np.random.default_rng(3), 5) for _ in range(2)
            ]
            assert said[0] == said[1] and len(said[0].splitlines()) == 5
            state = play(task, *((said[0], "") if number == 0 else ("", said[0]))).state
            assert state.rejected == 0 and len(state.blocks) == 5
            assert task.metrics(state)["extra"] == 0
        many = task.random_actions(LETTER, "builder_1", np.random.default_rng(3), 99)
        assert len(many.splitlines()) == 6


def test_a_random_player_lists_its_cells_in_the_order_of_the_prompt_s_rows():
    task = StrBuild(prompt="compact", font="small")
    said = task.random_actions(StringItem("L"), "builder_1", np.random.default_rng(3), 9)
    assert [line.split()[0] for line in said.splitlines()] == ["a3", "a2", "a1", "b1", "c1"]


def test_the_picture_shows_target_owner_and_texture():
    task = StrBuild(font="small")
    item = StringItem("L")
    first, second = say((0, 0, "stone")), say((1, 0, "obsidian"), (2, 2, "obsidian"))
    state = play(task, first, second, item).state
    assert task.render(state) == "#..   ..2   ..o\n#..   ...   ...\n###   12.   so."


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"variant": "papr"}, "task.variant: unknown value 'papr'; did you mean 'paper'?"),
        ({"horizon": 0}, "task.horizon: must be a whole number, got 0; set it to 1 or more"),
        ({"strings": "ICML"}, "task.strings: must be a list of strings, got 'ICML'; write [ICML]"),
        ({"strings": []}, "task.strings: is empty"),
        ({"strings": [False]}, "task.strings: False is no string; put it in quotes"),
        ({"test_strings": ["A B"]}, "task.test_strings: 'A B' cannot be drawn"),
        ({"strings": ["A", "ICML"]}, "task.test_strings: 'ICML' is among task.strings, too"),
        ({"max_commands": 1}, "task.max_commands: 1 leaves no command for some of 2 agents"),
        ({"reward_shift": float("nan")}, "task.reward_shift: must be a finite number, got nan"),
    ],
)
def test_a_bad_setting_is_one_line_with_the_remedy(settings, line):
    with pytest.raises(ConfigError) as caught:
        StrBuild(**settings)
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_the_default_strings_are_those_of_the_published_file():
    if not CSV.exists():
        pytest.skip(f"{CSV} is absent")
    with CSV.open() as file:
        strings = [row["string"] for row in csv.DictReader(file)]
    task = StrBuild()
    assert [item.text for item in (*task.items("train"), *task.items("test"))] == strings
    assert StrBuild(strings=strings).items("train")[9] == StringItem("CLIM")
