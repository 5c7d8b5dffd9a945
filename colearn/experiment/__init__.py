"""A training run: rollout, update, evaluation, checkpoints."""
