"""Evaluation: sampled episodes, exact values, pass@k."""
