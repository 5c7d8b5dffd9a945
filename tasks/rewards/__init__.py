"""Reward functions for tasks, by name: the user's own, an LLM judge, a reward model."""

NAMES = {
    "function": "function:PythonFunction",
    "judge": "judge:Judge",
    "reward_model": "reward_model:RewardModel",
}
