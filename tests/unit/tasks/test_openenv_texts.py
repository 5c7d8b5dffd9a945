"""Actions and observations of OpenEnv servers as text."""

from __future__ import annotations

import pytest

from colearn.errors import ConfigError
from colearn.tasks.openenv.texts import action_form, read_action, write_observation

METADATA = {"type": "object"}
PRESS = {
    "properties": {"metadata": METADATA, "colour": {"type": "string"}},
    "required": ["colour"],
}
COUNT = {"properties": {"metadata": METADATA, "count": {"type": "integer"}}}
ORDER = {
    "properties": {
        "metadata": METADATA,
        "item": {"type": "string"},
        "count": {"type": "integer"},
    },
    "required": ["item", "count"],
}


def test_an_answer_fills_the_only_field_of_an_action():
    form = action_form(PRESS, None)
    assert form.system is None
    assert read_action(" 7 red", form) == {"colour": " 7 red"}


def test_a_field_that_is_no_text_takes_the_answers_json():
    form = action_form(COUNT, None)
    assert read_action("7", form) == {"count": 7}
    with pytest.raises(ValueError, match=r"^the answer is no JSON$"):
        read_action("seven", form)


def test_with_several_fields_an_answer_is_an_object_of_the_schema_that_is_shown():
    form = action_form(ORDER, None)
    assert form.system is not None
    assert form.system.splitlines()[1] == (
        '{"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": '
        '"integer"}}, "required": ["item", "count"]}'
    )
    assert read_action('{"item": "tea", "count": 2}', form) == {"item": "tea", "count": 2}
    with pytest.raises(ValueError, match=r"^the answer is no JSON object$"):
        read_action("[1]", form)


def test_a_field_may_be_named_among_several():
    form = action_form(ORDER, "item")
    assert form.system is None
    assert read_action("tea", form) == {"item": "tea"}
    with pytest.raises(ConfigError, match=r"^task\.action: actions have no field 'itme'; did you"):
        action_form(ORDER, "itme")


def test_an_observation_is_shown_by_its_only_field_a_named_one_or_as_json():
    assert write_observation({"text": "a lamp"}, None) == "a lamp"
    assert write_observation({"left": 3}, None) == "3"
    desk = {"asked": "tea", "left": 4, "metadata": {"hidden": 1}}
    assert write_observation(desk, None) == '{"asked": "tea", "left": 4}'
    assert write_observation(desk, "asked") == "tea"
    with pytest.raises(ConfigError, match=r"^task\.observation: observations have no field 'seen'"):
        write_observation(desk, "seen")
