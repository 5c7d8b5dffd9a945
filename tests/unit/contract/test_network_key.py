"""The key of a network says its folder, its adapter and its section of the config."""

from __future__ import annotations

from colearn.contract import NetworkKey


def test_a_keys_text_is_the_folder_in_a_checkpoint() -> None:
    keys = (
        NetworkKey("actor", "ada"),
        NetworkKey("critic", "team"),
        NetworkKey("reference", "ada"),
        NetworkKey("past", "ada", 0),
    )
    assert list(map(str, keys)) == ["actor-ada", "critic-team", "reference-ada", "past-0-ada"]


def test_an_adapters_name_has_no_dash() -> None:
    """Its seed is drawn from it: other names would be other first weights."""
    keys = (NetworkKey("actor", "ada"), NetworkKey("past", "ada", 0))
    assert [key.adapter for key in keys] == ["actor_ada", "past_0_ada"]


def test_a_critics_section_is_one_for_all_value_models() -> None:
    assert NetworkKey("critic", "ada").section == "critic"
    assert NetworkKey("reference", "ada").section == "models.ada"


def test_a_model_whose_name_looks_like_a_key_stays_itself() -> None:
    assert NetworkKey("actor", "critic-ada").kind == "actor"
    assert NetworkKey("past", "ada", 1) != NetworkKey("past", "1-ada")
