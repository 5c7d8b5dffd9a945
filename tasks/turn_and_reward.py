"""The central critic's extra text m_t of the CoLLM paper's tasks (E.3)."""

from __future__ import annotations


def turn_and_reward(turn: int, horizon: int, reward: float, highest: float) -> str:
    """The text after `turn` turns: the number of the next turn and the last turn's reward."""
    return (
        f"You are at turn = {min(turn + 1, horizon)} over a {horizon}-turn episode.\n"
        f"Your last-turn reward is {reward:.2f} / {highest:.2f}."
    )
