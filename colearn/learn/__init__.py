"""Learners: one optimiser each, over rows of packed token sequences."""
