"""The base of another tokenizer that private stakes' fresh teams can have."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from _other_base import LONGEST, characters
from stakes import ANSWERS


def test_an_answer_of_the_other_base_is_a_token_a_character_and_its_end():
    tokenizer = characters()
    longest = max(ANSWERS, key=len)
    ids = tokenizer(longest, add_special_tokens=False)["input_ids"]
    assert [tokenizer.decode([one]) for one in ids] == list(longest)
    assert len(ids) + 1 == LONGEST


def test_a_prompt_of_the_other_base_reads_back_as_it_was_written():
    tokenizer = characters()
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "stake nine key blue"}],
        tokenize=False,
        add_generation_prompt=True,
    )
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == "<user>stake nine key blue<answer>"
