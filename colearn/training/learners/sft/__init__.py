"""Supervised fine-tuning of a team's models on dialogues, with TRL's SFTTrainer."""

from .dialogues import Dialogue, read_dialogues
from .run import fine_tune

__all__ = ["Dialogue", "fine_tune", "read_dialogues"]
