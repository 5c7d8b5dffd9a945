"""What a value model reads of a tree: a stream of marked text, or an agent's own tokens."""

from __future__ import annotations

from typing import Any, Literal

from colearn.contract import Critic
from colearn.contract.rows import Row
from colearn.critic.stream import Tokenize, text_stream
from colearn.errors import ConfigError
from colearn.types import Tree

from .row import stream_row, token_row

FIELD = "critic.max_length"


def critic_row(
    tree: Tree[Any], critic: Critic, reader: str, tokenize: Tokenize, *, key: int = 0, limit: int
) -> Row:
    """One row, with a mark wherever a value is read.

    Errors: ConfigError where the longest branch exceeds `limit` tokens.
    """
    if critic.value == "token":
        (agent,) = critic.readers(tree.agents)[reader]
        return token_row(tree, agent, key=key, limit=limit, field_name=FIELD)
    stream = text_stream(tree, critic, reader, tokenize)
    return stream_row(tree, stream, key=key, limit=limit, field_name=FIELD)


def head_value(critic: Critic | None) -> Literal["v", "q"]:
    """What a value head on the actor reads.

    Errors: ConfigError for a critic of tokens.
    """
    assert critic is not None, "a head on the actor is a critic's"
    if critic.value == "token":
        raise ConfigError(
            "critic.share: a critic of tokens needs a value model of its own; set critic.path"
        )
    return critic.value
