"""What a gateway trains: the ids that were sampled, and nothing that a tool said."""

from __future__ import annotations

from colearn.deploy.client.protocol.tool_call_text import write_call
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from tests.helpers.gateway_programs import LOGPROBS, USAGE, gateway
from tests.helpers.scripted_voice import scripted_players


def test_a_tools_text_is_context_and_never_an_action():
    """The result of a tool is tainted: the taint is observed, and in no action's ids."""
    players, tokenizer = scripted_players(("one", "two"), write_call("look", {"at": "sky"}))
    (tree,), _ = grow(gateway("tools"), ["owl"], players, Chain(), seed=0, order="free")
    taint = tokenizer("TAINT", add_special_tokens=False)["input_ids"]
    actions = [a.tokens for node in tree.nodes for a in node.actions.values()]
    seen = [o.tokens for node in tree.nodes for o in node.observations.values()]
    assert len(actions) == 2
    assert any(_holds(tokens, taint) for tokens in seen)
    assert not any(_holds(tokens, taint) for tokens in actions)
    first, second = tree.nodes[0].observations["one"], tree.nodes[1].observations["one"]
    history = tree.history(1, "one").tokens
    assert history == (*first.tokens, *actions[0], *second.tokens)


def test_usage_counts_the_tokens_of_the_context_and_of_the_answer():
    players, _ = scripted_players(("one", "two"), "yes")
    USAGE.clear()
    (tree,), _ = grow(gateway("notes_usage"), ["owl"], players, Chain(), seed=0, order="free")
    contexts = [len(tree.history(node, "one").tokens) for node in (0, 1)]
    assert contexts[1] > contexts[0] > 0
    assert [
        {"prompt_tokens": tokens, "completion_tokens": 4, "total_tokens": tokens + 4}
        for tokens in contexts
    ] == USAGE


def test_log_probabilities_of_the_sampled_tokens_are_told_where_they_are_asked_for():
    players, _ = scripted_players(("one", "two"), "yes")
    LOGPROBS.clear()
    (tree,), _ = grow(gateway("notes_logprobs"), ["owl"], players, Chain(), seed=0, order="free")
    action = tree.nodes[-1].actions["one"]
    without, told = LOGPROBS
    assert without is None
    assert [one["logprob"] for one in told["content"]] == list(action.logprobs)
    assert "".join(one["token"] for one in told["content"]) == action.text


def _holds(tokens, part):
    return any(list(tokens[n : n + len(part)]) == part for n in range(len(tokens)))
