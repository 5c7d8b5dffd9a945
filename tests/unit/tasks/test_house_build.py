import json
from pathlib import Path

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.house_build import HouseBuild
from colearn.tasks.house_build.houses import House, house_count, make_house
from colearn.tasks.house_build.shapes import (
    block_counts,
    pieces,
    rectangles,
    resource_limit,
    shares,
)
from colearn.tasks.house_build.world import Box, cell_word

DATA = Path(__file__).parents[3] / "shared" / "data" / "minecraft" / "house_build.json"
C, D, S = "white_concrete", "planks", "stone"

HUT_ENTRY = {
    "task_id": "hut",
    "inventory": {"C": C, "D": D, "S": S, "A": "air"},
    "target_spec": {
        "type": "y_layers",
        "size": [3, 2, 2],
        "layers": [{"y": 0, "rows": ["CDC", "CCC"]}, {"y": 1, "rows": ["AAA", "SSA"]}],
    },
}
HUT = House(
    "hut",
    (3, 2, 2),
    (
        *(((0, 0, 0), C), ((1, 0, 0), D), ((2, 0, 0), C)),
        *(((0, 0, 1), C), ((1, 0, 1), C), ((2, 0, 1), C)),
        *(((0, 1, 1), S), ((1, 1, 1), S)),
    ),
)
"""8 of 12 cells: 5 of C, 1 of D, 2 of S; 4 are air. Two agents may fill 4, 1 and 1 of them each."""

KILL = "/kill @e[type=spider]\n"
BACK = f"/fill 0 0 1 2 0 1 {C}\n"
FRONT = f"/fill 0 0 0 0 0 0 {C}\n/fill 2 0 0 2 0 0 {C}\n/fill 1 0 0 1 0 0 {D}\n"
LEFT_ROOF, RIGHT_ROOF = f"/fill 0 1 1 0 1 1 {S}\n", f"/fill 1 1 1 1 1 1 {S}\n"


def hit(points):
    return f"/damage @e[type=spider,limit=1] {points} minecraft:player_attack\n"


def make(**settings):
    """Two spiders of attack 2 and 6 health points, players of 5: harm 4/5, 2/5 or 0."""
    return HouseBuild(**{"spiders": 2, "spider_attack": [2, 2], **settings})


def play(task, first="", second="", house=HUT):
    rng = np.random.default_rng(0)
    return task.step(task.reset(house, rng), {"builder_1": first, "builder_2": second}, rng)


# By name: what the two agents say, the raw reward in paper and in comlrl. In paper
# 2 covered/8 - 1.5 extra/8 - 0.2 harm; in comlrl right cells of 12 - 0.1 harm.
REWARDS = {
    # nothing covered, two spiders live: harm 4/5; the 4 cells of air are right
    "nothing": ("", "", -0.2 * 0.8, 4 / 12 - 0.1 * 0.8),
    "a kill alone": (KILL, "", 0, 4 / 12),
    "the second agent's kill": ("", KILL, 0, 4 / 12),
    # 3 of 8 covered
    "the back row": (BACK + KILL, "", 6 / 8, 7 / 12),
    "the back row among spiders": (BACK, "", 6 / 8 - 0.2 * 0.8, 7 / 12 - 0.1 * 0.8),
    # 3 cells of concrete, one of them where the door belongs: 2 covered, no extra
    "a wall instead of the door": (f"/fill 0 0 0 2 0 0 {C}", KILL, 4 / 8, 6 / 12),
    # 3 blocks outside: 1 of 4 air cells left
    "blocks outside": (f"/fill 0 1 0 2 1 0 {C}", KILL, -4.5 / 8, 1 / 12),
    # back row right, and 1 block outside
    "both": (BACK + f"/fill 2 1 1 2 1 1 {C}", KILL, 6 / 8 - 1.5 / 8, 6 / 12),
    # one spider of two dies: harm 2/5; comlrl knows no /damage
    "one hit": (hit(6), "", -0.2 * 0.4, 4 / 12 - 0.1 * 0.8),
    "two half hits on the first spider": (hit(3), hit(3), -0.2 * 0.4, 4 / 12 - 0.1 * 0.8),
    "a hit that does not kill": (hit(5), "", -0.2 * 0.8, 4 / 12 - 0.1 * 0.8),
    "two hits of two agents": (hit(6), hit(6), 0, 4 / 12 - 0.1 * 0.8),
    # limit=1 kills one in paper; comlrl takes any /kill for all
    "a limited kill": ("/kill @e[type=spider,limit=1]", "", -0.2 * 0.4, 4 / 12),
    # agent 2 puts a door into the wall of agent 1: 3 covered
    "the later agent overwrites": (
        f"/fill 0 0 0 2 0 0 {C}",
        KILL + f"/fill 1 0 0 1 0 0 {D}",
        6 / 8,
        7 / 12,
    ),
    # of 3 covered cells 2 are cleared
    "the later agent clears": (BACK, KILL + "/fill 0 0 1 1 0 1 air", 2 / 8, 5 / 12),
    # of the 3 blocks outside none is left
    "the later agent clears outside": (
        f"/fill 0 1 0 2 1 0 {C}",
        KILL + "/fill 0 1 0 2 1 0 air",
        0,
        4 / 12,
    ),
    # 6 cells of concrete where 4 are allowed: rejected whole
    "more than the resources": (f"/fill 0 0 0 2 0 1 {C}", KILL, 0, 4 / 12),
    # 3 and then 2 of 4: the second is rejected whole, although 1 was left
    "more than what is left": (BACK + f"/fill 0 0 0 1 0 0 {C}", KILL, 6 / 8, 7 / 12),
    # filling again is charged again: 3 + 3 > 4
    "the same twice": (BACK + BACK + f"/fill 0 0 0 0 0 0 {C}", KILL, 8 / 8, 8 / 12),
    # 6 of 8
    "no roof": (BACK + KILL, FRONT, 12 / 8, 10 / 12),
    "everything": (BACK + LEFT_ROOF, FRONT + RIGHT_ROOF + KILL, 2, 1),
    "everything among spiders": (BACK + LEFT_ROOF, FRONT + RIGHT_ROOF, 2 - 0.16, 1 - 0.08),
}


@pytest.mark.parametrize("first, second, paper, comlrl", REWARDS.values(), ids=REWARDS)
def test_rewards_of_both_variants_match_the_numbers_by_hand(first, second, paper, comlrl):
    for variant, raw, highest in (("paper", paper, 2), ("comlrl", comlrl, 1)):
        outcome = play(make(variant=variant), first, second)
        assert outcome.state.reward == pytest.approx(raw, abs=1e-12)
        assert outcome.reward == pytest.approx(raw - highest, abs=1e-12)


def test_the_penalty_for_spiders_stops_at_the_players_health():
    # three spiders of 3: 9 > 5, so min(1, 9/5) = 1
    task = make(spiders=3, spider_attack=[3, 3])
    state = play(task).state
    assert state.reward == pytest.approx(-0.2)
    assert task.metrics(state)["health"] == 0


def test_in_comlrl_an_agent_alone_loses_nothing_to_spiders():
    rng = np.random.default_rng(0)
    for variant, raw in (("paper", -0.16), ("comlrl", 4 / 12)):
        task = make(variant=variant, agents=1)
        outcome = task.step(task.reset(HUT, rng), {"builder_1": ""}, rng)
        assert outcome.state.reward == pytest.approx(raw)


def test_an_episode_is_done_only_above_the_variants_threshold():
    built = (BACK + LEFT_ROOF, FRONT + RIGHT_ROOF)
    assert not play(make(), *built).done  # 1.84
    assert play(make(spiders=1), *built).done  # 2 - 0.2 * 2/5 = 1.92
    assert play(make(variant="comlrl"), *built).done  # 0.92
    # 1 - 0.1 * min(1, 6/5) = 0.9
    assert not play(make(variant="comlrl", spiders=3), *built).done


def test_the_shift_is_a_setting_and_moves_the_range(tmp_path):
    path = tmp_path / "huts.json"
    path.write_text(json.dumps([HUT_ENTRY, HUT_ENTRY | {"task_id": "other"}]))
    task = make(houses_file=str(path), train_houses=1, reward_shift=0)
    assert play(task, KILL).reward == 0
    assert task.reward_range == pytest.approx((-1.5 * 4 / 8 - 0.2, 2))
    assert HouseBuild(variant="comlrl").reward_range == (-1.1, 0)


def test_metrics_are_those_of_the_last_turn():
    task = make()
    said = f"/fill 0 0 0 2 0 0 {C}\n/fill 2 1 1 2 1 1 {C}\nhello\n" + hit(6)
    assert task.metrics(play(task, said, "and bye").state) == pytest.approx(
        {
            "score": 2 * 2 / 8 - 1.5 / 8 - 0.2 * 2 / 5,
            "iou": 3 / 9,
            "health": 3 / 5,
            "coverage": 2 / 8,
            "match": 5 / 12,
            "extra": 1,
            "rejected": 2,
        }
    )


def test_every_turn_starts_from_an_empty_world_with_all_spiders():
    task, rng = make(), np.random.default_rng(0)
    state = play(task, BACK + KILL).state
    after = task.step(state, {"builder_1": "", "builder_2": LEFT_ROOF}, rng).state
    assert [block.cell for block in after.blocks] == [(0, 1, 1)]
    assert (state.alive, after.alive, after.damage, after.turn) == (0, 2, 4, 2)


def test_spiders_are_drawn_per_episode_from_its_generator():
    task = HouseBuild()
    drawn = [task.reset(HUT, np.random.default_rng(seed)).spiders for seed in range(50)]
    assert drawn[7] == task.reset(HUT, np.random.default_rng(7)).spiders
    assert len(set(drawn)) > 10
    assert {value for spiders in drawn for value in spiders} == {1, 2, 3}
    assert {len(spiders) for spiders in drawn} == {3}


def test_an_attack_hits_the_first_spiders_that_live():
    task, rng = HouseBuild(), np.random.default_rng(0)
    state = task.reset(HUT, rng)
    said = {"builder_1": hit(6) + hit(4), "builder_2": hit(2)}
    assert task.step(state, said, rng).state.damage == state.spiders[2]
    said = {"builder_1": hit(6), "builder_2": "/kill @e[type=minecraft:spider, limit=1]"}
    assert task.step(state, said, rng).state.damage == state.spiders[2]


def test_corners_are_inclusive_and_may_stand_in_any_order():
    state = play(make(), f"/fill 1 0 1 0 0 0 {C}").state
    assert [block.cell for block in state.blocks] == [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)]


def test_setblock_is_a_command_of_the_paper_variant():
    for variant, cells in (("paper", [(2, 0, 1)]), ("comlrl", [])):
        state = play(make(variant=variant), f"/setblock 2 0 1 {C}").state
        assert [block.cell for block in state.blocks] == cells
        assert state.rejected == 1 - len(cells)


def test_bullets_fences_prefixes_and_trailing_words_are_tolerated():
    text = (
        f"```mcfunction\n- /fill 0 0 0 0 0 0 minecraft:{C}\n 2) /fill 2 0 0 2 0 0 {C} replace\n"
        f"* /fill 1 0 0 1 0 0 {D} # the door\n\n/kill @e[type=spider] now\n```"
    )
    state = play(make(), text).state
    assert (len(state.blocks), state.alive, state.rejected) == (3, 0, 0)


@pytest.mark.parametrize(
    "line",
    [
        "Sure, here you go:",
        f"fill 0 0 0 0 0 0 {C}",
        f"/fill ~0 0 0 0 0 0 {C}",
        f"/fill 0 0 0 0 0 {C}",
        f"/fill -1 0 0 0 0 0 {C}",
        f"/fill 0 0 0 3 0 0 {C}",
        f"/fill 0 0 0 0 0 99999999999999999999 {C}",
        f"/fill 0 0 0 0 0 \u0660 {C}",
        "/fill 0 0 0 0 0 0 obsidian",
        "/fill 0 0 0 0 0 0 STONE",
        "/fill 0 0 0 0 0 0",
        f"/fill 0 0 0 0 0 0 {C} keep",
        f"/fill 0 0 0 1 0 1 {C} replace air",
        f"/fill 0 0 0 2 0 1 {C}",
        "/clone 0 0 0 0 0 0 1 0 0",
        "/kill @e",
        "/kill @e[type=zombie]",
        "/kill @e[type=spider,limit=0]",
        "/killall",
        "/damage @e[type=spider] 6 minecraft:player_attack",
        "/damage @e[type=spider,limit=2] 6",
        "/damage @e[type=zombie,limit=1] 6",
        "/damage @e[type=spider,limit=1] 7",
        "/damage @e[type=spider,limit=1] -6",
        "/damage @e[type=spider,limit=1]",
        "kill",
        f"a1-1 {C}",
    ],
)
def test_any_other_line_is_rejected_alone_and_counted(line):
    state = play(make(), f"{RIGHT_ROOF}{line}\n{BACK}").state
    assert len(state.blocks) == 4
    assert (state.alive, state.rejected) == (2, 1)


def test_commands_beyond_the_limit_are_rejected_and_invalid_lines_do_not_use_it_up():
    task = make(max_commands=5)
    assert task.limit == 2 and make().limit == 300 and make(agents=3).limit == 200
    state = play(task, f"hm\n{KILL}{BACK}{LEFT_ROOF}").state
    assert (len(state.blocks), state.alive, state.rejected) == (3, 0, 2)


def test_the_compact_form_takes_short_and_long_commands():
    task = make(prompt="compact")
    state = play(
        task, f"a1-1 {C}\n- c2-1 a2-1 {C}\n/fill 1 0 0 1 0 0 {D}\nkill\na1-1\nd1-1 {C}"
    ).state
    assert [block.cell for block in state.blocks] == [
        *((0, 0, 0), (1, 0, 0)),
        *((0, 0, 1), (1, 0, 1), (2, 0, 1)),
    ]
    assert (state.alive, state.rejected) == (0, 2)


def test_a_cell_is_one_word_column_row_and_layer():
    assert [cell_word(cell) for cell in ((0, 1, 0), (2, 0, 9), (26, 9, 0))] == [
        *("a1-2", "c10-1", "aa1-10")
    ]


def test_resources_are_about_three_quarters_of_the_need_for_two():
    assert [resource_limit(count, 2) for count in (68, 12, 2, 5, 1)] == [51, 9, 1, 4, 1]
    assert [resource_limit(7, agents) for agents in (1, 2, 3)] == [7 + 3, 4 + 1, 3 + 1]


@pytest.mark.parametrize("size", ["large", "small"])
def test_made_houses_are_all_different_and_of_four_blocks(size):
    houses = [make_house(size, number) for number in range(house_count(size))]
    assert len({(house.size, house.blocks) for house in houses}) == len(houses)
    for house in houses:
        assert sorted(block_counts(house)) == ["oak_planks", "obsidian", "stone", "white_concrete"]


def test_the_first_house_is_that_of_figure_3b():
    house = make_house("large", 0)
    assert house.name == "large_0_5x5_ridge_x_front" and house.size == (5, 7, 5)
    blocks = dict(house.blocks)
    wall = "white_concrete"
    assert [blocks[2, y, 0] for y in range(4)] == [wall, "oak_planks", "oak_planks", wall]
    # four pillars of 3; floor 25 and walls 3 * 12 without a door of 2; roof 25 + 15 + 5
    assert block_counts(house) == {
        "white_concrete": 59,
        "obsidian": 12,
        "oak_planks": 2,
        "stone": 45,
    }


def test_rectangles_and_pieces_hold_exactly_the_house():
    for house in (HUT, make_house("large", 4), make_house("small", 9)):
        for boxes in (rectangles(dict(house.blocks)), pieces(house, 1), pieces(house, 3)):
            cells = [(cell, box.block) for box in boxes for cell in box.cells()]
            assert len(cells) == len(house.blocks) and set(cells) == set(house.blocks)
    assert rectangles(dict(HUT.blocks)) == (
        Box((0, 0, 0), (0, 0, 1), C),
        Box((1, 0, 0), (1, 0, 0), D),
        Box((2, 0, 0), (2, 0, 1), C),
        Box((1, 0, 1), (1, 0, 1), C),
        Box((0, 1, 1), (1, 1, 1), S),
    )


@pytest.mark.parametrize("agents", [1, 2, 3, 5])
def test_a_share_stays_within_the_resources(agents):
    for house in (HUT, make_house("large", 4)):
        for own in shares(house, agents):
            for block, count in block_counts(house).items():
                used = sum(box.volume for box in own if box.block == block)
                assert used <= resource_limit(count, agents)


@pytest.mark.parametrize(
    ("variant", "prompt", "agents"),
    [
        ("paper", "full", 2),
        ("paper", "compact", 3),
        ("comlrl", "full", 1),
        ("comlrl", "compact", 2),
    ],
)
def test_the_reference_earns_the_maximum_for_every_house(variant, prompt, agents):
    for size in ("large", "small"):
        task = HouseBuild(variant=variant, prompt=prompt, agents=agents, size=size)
        rng = np.random.default_rng(0)
        for house in (*task.items("train"), *task.items("test")):
            state = task.reset(house, rng)
            outcome = task.step(state, task.reference_actions(state), rng)
            assert outcome.reward == 0 and outcome.done and outcome.state.rejected == 0
            metrics = task.metrics(outcome.state)
            assert metrics["iou"] == metrics["health"] == metrics["match"] == 1


@pytest.mark.parametrize(("variant", "prompt"), [("paper", "full"), ("comlrl", "compact")])
def test_the_task_keeps_the_contract(variant, prompt):
    task = HouseBuild(variant=variant, prompt=prompt, size="small")
    check_task(task, seeds=(0,), episodes=1, actions=task.legal_action)


def test_legal_actions_are_legal_and_repeat_with_the_generator():
    for prompt in ("full", "compact"):
        task = HouseBuild(prompt=prompt, size="small", max_commands=12)
        lengths = set()
        for seed in range(30):
            state = task.reset(task.items("train")[seed % 8], np.random.default_rng(seed))
            said = [
                task.legal_action(state, "builder_2", np.random.default_rng(seed)) for _ in range(2)
            ]
            assert said[0] == said[1]
            lengths.add(len(said[0].splitlines()))
            after = play(task, "", said[0], state.item).state
            assert after.rejected == 0 and task.metrics(after)["extra"] == 0
        assert lengths == set(range(1, 7))


def test_the_compact_prompt_is_plain_words_that_can_be_copied():
    task = make(prompt="compact", max_commands=12)
    state = task.reset(HUT, np.random.default_rng(0))
    assert task.observe(state, "builder_2") == (
        f"house 3 2 2\na1-1 a2-1 {C}\nb1-1 {D}\nc1-1 {C}\nb2-1 c2-1 {C}\na2-2 {S}\nb2-2 {S}\n"
        f"you builder_2 max 6 {C} 4 {D} 1 {S} 1\nspiders 2 2 damage 4 hp 5"
    )
    said = {"builder_1": f"b2-1 c2-1 {C}\nc2-2 {C}", "builder_2": f"kill\na2-2 {S}"}
    state = task.step(state, said, np.random.default_rng(0)).state
    # 3 of 8 covered, 1 extra: 0.75 - 0.1875, rounded to a quarter
    assert task.observe(state, "builder_1") == (
        f"reward 0.5 missing a1-1 a2-1 {C} b1-1 {D} c1-1 {C} b2-2 {S} extra c2-2 air"
    )


def test_the_full_prompt_is_the_papers():
    task = make()
    text = task.observe(task.reset(HUT, np.random.default_rng(0)), "builder_2")
    assert text.startswith("You are Player 2 in a 2-person Minecraft building team.")
    assert f"- {C} (at most 4)\n- {D} (at most 1)\n- {S} (at most 1)\n- air\n" in text
    assert f"- y=1: {{(0, 1, 1, 1, 1, 1 {S})}}\n" in text
    assert "- from: [0, 0, 0]\n- to: [2, 1, 1]" in text
    assert "There are 2 spiders nearby; you have 5 HP." in text
    assert "list: [2, 2], total damage dmg=4." in text
    assert "/damage @e[type=spider,limit=1] 6 minecraft:player_attack. All other" in text
    assert "At most" not in text and text.endswith("must be within the bbox.")
    assert "Threat" not in task.observe(
        make(spiders=0).reset(HUT, np.random.default_rng(0)), "builder_1"
    )


def test_comlrl_lists_resources_apart_and_offers_kill_alone():
    task = make(variant="comlrl", max_commands=10)
    text = task.observe(task.reset(HUT, np.random.default_rng(0)), "builder_1")
    assert f"Resource limits per agent:\n- {C}: 4\n- {D}: 1\n- {S}: 1\n" in text
    assert "/damage" not in text and "/kill @e[type=spider]. All" in text
    assert text.endswith("- At most 5 commands.")


def test_feedback_by_position_lists_what_is_missing_and_what_is_extra():
    task = make()
    state = play(task, BACK + f"/fill 2 1 1 2 1 1 {C}\n" + hit(6), FRONT).state
    text = task.observe(state, "builder_1")
    # 6 of 8 covered, 1 extra, one spider: 1.5 - 0.1875 - 0.08
    assert text.startswith("Turn 2 of 4. Reward of the last build: 1.23 / 2.00.\n")
    assert f"Still missing: (0, 1, 1, 1, 1, 1 {S}).\n" in text
    assert "Blocks outside the house: (2, 1, 1, 2, 1, 1).\n" in text
    assert "1 of 2 spiders attacked: 3 of 5 HP were left." in text
    assert text == task.observe(state, "builder_2")


def test_feedback_of_comlrl_tells_turn_and_reward_only():
    task = make(variant="comlrl")
    text = task.observe(play(task, BACK + KILL).state, "builder_1")
    assert text.startswith("Turn 2 of 4. Reward of the last build: 0.58 / 1.00.\nEvery turn")


@pytest.mark.parametrize("prompt", ["full", "compact"])
def test_an_observation_never_shows_what_the_other_agent_wrote(prompt):
    task = make(prompt=prompt)
    said = "my secret plan\n/fill 2 1 1 2 1 1 {block}"
    seen = [
        task.observe(play(task, "", said.format(block=block)).state, "builder_1")
        for block in (C, D)
    ]
    assert seen[0] == seen[1] and "secret" not in seen[0] and "builder_2" not in seen[0]


def test_the_picture_shows_house_build_and_owners_by_layer():
    task = make()
    state = play(task, f"/fill 0 0 0 1 0 0 {C}", RIGHT_ROOF + hit(6)).state
    assert task.render(state) == (
        "y=0\nwpw   ww.   11.\nwww   ...   ...\ny=1\n...   ...   ...\nss.   .s.   .2.\n"
        "w white_concrete, p planks, s stone\nspiders 1 of 2, health 3 of 5"
    )


def test_the_split_is_the_papers_eight_and_two():
    task = HouseBuild()
    assert [len(task.items(split)) for split in ("train", "test")] == [8, 2]
    assert not {*task.items("train")} & {*task.items("test")}
    small = HouseBuild(size="small", houses=20, train_houses=15)
    assert [len(small.items(split)) for split in ("train", "test")] == [15, 5]


@pytest.mark.parametrize(
    "settings, line",
    [
        ({"variant": "papr"}, "task.variant: unknown value 'papr'; did you mean 'paper'?"),
        ({"agents": True}, "task.agents: must be a whole number"),
        ({"max_commands": 1}, "task.max_commands: 1 leaves no command for some of 2 agents"),
        ({"spider_attack": 3}, "task.spider_attack: must be the lowest and the highest, got 3"),
        ({"spider_attack": [3, 1]}, "task.spider_attack: [3, 1] is empty; swap the two"),
        ({"reward_shift": float("nan")}, "task.reward_shift: must be a finite number, got nan"),
        ({"houses": 145}, "task.houses: there are 144 large houses, not 145; set it lower"),
        ({"train_houses": 10}, "task.train_houses: 10 leaves none of 10 houses for the test"),
        ({"houses_file": "no.json"}, "task.houses_file: no.json: No such file or directory"),
        ({"houses_file": "x", "size": "small"}, "task.size: the houses are those of houses_file"),
    ],
)
def test_a_bad_setting_is_one_line_with_the_remedy(settings, line):
    with pytest.raises(ConfigError) as caught:
        HouseBuild(**settings)
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_a_file_of_houses_is_read_as_it_is_written(tmp_path):
    path = tmp_path / "huts.json"
    full = {"count": {"C": 5, "D": 1, "S": 2, "A": 4}, "bbox": None, "variant": "flat"}
    other = {"task_id": "other", "bbox": {"from": [0, 0, 0], "to": [2, 1, 1]}}
    path.write_text(json.dumps([HUT_ENTRY | full, HUT_ENTRY | other]))
    task = HouseBuild(houses_file=str(path), train_houses=1)
    assert task.items("train")[0] == HUT
    assert task.items("test")[0].blocks == HUT.blocks


def spec(**changes):
    return {"target_spec": HUT_ENTRY["target_spec"] | changes}


LAYERS = HUT_ENTRY["target_spec"]["layers"]


@pytest.mark.parametrize(
    "entry, line",
    [
        ({"rows": []}, "house 0: unknown key 'rows'; known:"),
        ({"task_id": 3}, "house 0: task_id must be text, got 3"),
        ({"inventory": {"C": C}}, "house 'hut': letter 'D' is not in the inventory; add it"),
        ({"inventory": {"CC": C}}, "house 'hut': inventory: 'CC' must be one letter"),
        ({"inventory": {"C": "a b"}}, "house 'hut': inventory: 'a b' is no block"),
        (spec(type="x"), "house 'hut': type must be 'y_layers', got 'x'"),
        (spec(size=[3, 2]), "house 'hut': size must be three whole numbers"),
        (spec(size=[3, 3, 2]), "house 'hut': layer y=2 is missing; size is [3, 3, 2]"),
        (spec(size=[3, 1, 2]), "house 'hut': layer y=1 lies outside size [3, 1, 2]"),
        (spec(size=[3, 2, 1]), "house 'hut': layer y=0 must have 1 rows"),
        (spec(size=[2, 2, 2]), "house 'hut': layer y=0, row 0 must have 2 letters, got 'CDC'"),
        (spec(layers=[*LAYERS, LAYERS[1]]), "house 'hut': layer y=1 stands twice"),
        (spec(layers=[{"y": 0}]), "house 'hut', layers: 'rows' is missing; add it"),
        ({"count": {"C": 5}}, "house 'hut': count must be {'C': 5, 'D': 1, 'S': 2, 'A': 4}"),
        ({"bbox": {"from": [1, 0, 0], "to": [3, 1, 1]}}, "house 'hut': bbox must be {'from': [0,"),
        ({"inventory": dict.fromkeys("CDSA", "air")}, "house 'hut': it is all air"),
    ],
)
def test_a_wrong_house_in_a_file_is_one_line_with_its_name(tmp_path, entry, line):
    path = tmp_path / "huts.json"
    path.write_text(json.dumps([HUT_ENTRY | entry, HUT_ENTRY | {"task_id": "other"}]))
    with pytest.raises(ConfigError) as caught:
        HouseBuild(houses_file=str(path), train_houses=1)
    assert str(caught.value).startswith(f"task.houses_file: {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, line",
    [
        ("[", "is no JSON"),
        ("{}", "must hold a list of houses"),
        (json.dumps([HUT_ENTRY]), "holds one house; add another for the test split"),
        (json.dumps([HUT_ENTRY, HUT_ENTRY]), "task_id 'hut' stands twice; rename one"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, line):
    path = tmp_path / "huts.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        HouseBuild(houses_file=str(path), train_houses=1)
    assert str(caught.value).startswith("task.houses_file: ") and line in str(caught.value)


def test_every_house_of_the_published_file_loads_and_scores():
    if not DATA.exists():
        pytest.skip(f"{DATA} is absent")
    data = json.loads(DATA.read_text())
    rng = np.random.default_rng(0)
    for variant, highest in (("paper", 2), ("comlrl", 1)):
        task = HouseBuild(variant=variant, houses_file=str(DATA))
        houses = [*task.items("train"), *task.items("test")]
        assert [house.name for house in houses] == [entry["task_id"] for entry in data]
        for house, entry in zip(houses, data, strict=True):
            assert len(house.blocks) == 294 - entry["count"]["A"]
            state = task.reset(house, rng)
            outcome = task.step(state, task.reference_actions(state), rng)
            assert outcome.state.reward == highest and outcome.state.rejected == 0


def test_an_empty_build_of_the_first_published_house_scores_what_the_peer_reports():
    if not DATA.exists():
        pytest.skip(f"{DATA} is absent")
    # 122 of 294 cells are air: 0.415, and 0.315 when spiders of 5 damage take all 5 HP
    task = HouseBuild(variant="comlrl", houses_file=str(DATA), spiders=1, spider_attack=[5, 5])
    house = task.items("train")[0]
    assert play(task, "/kill", house=house).state.reward == pytest.approx(122 / 294)
    assert play(task, house=house).state.reward == pytest.approx(122 / 294 - 0.1)
