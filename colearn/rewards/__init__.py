"""Reward functions for tasks: the user's own, an LLM judge, a reward model. By name."""

NAMES = {
    "function": "function:PythonFunction",
    "judge": "judge:Judge",
    "reward_model": "reward_model:RewardModel",
}
