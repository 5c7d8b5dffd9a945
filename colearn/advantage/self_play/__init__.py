"""Advantages of self-play: groups by game and role (SPIRAL, MARSHAL, MT-GRPO)."""
