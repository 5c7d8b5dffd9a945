"""Metrics of the shipped tasks: unit, direction and meaning."""

from __future__ import annotations

from collections.abc import Mapping

from colearn.runs.record.metric_names import Metric

_WRITING = {
    "score": Metric("Reward divided by the highest possible reward.", "share", "higher"),
    "bounds": Metric("Reward for lengths within the bounds.", "reward", "higher"),
    "length": Metric("Reward for the ratio of the two lengths.", "reward", "higher"),
    "diversity": Metric("Reward for the ratio of new words.", "reward", "higher"),
    "style": Metric("Reward for the overlap of vocabularies.", "reward", "higher"),
    "coherence": Metric("Reward for kinds of transition words.", "reward", "higher"),
}
_ROUNDS = Metric("Completed turns of the team.", "turns", "lower")
_VALID = Metric("Answers in a valid format.", "share", "higher")
_SOLVED = Metric("Episodes that are solved at the end.", "share", "higher")
_GRID = {
    "solved": _SOLVED,
    "progress": Metric("Progress towards the solution.", "share", "higher"),
    "rounds": _ROUNDS,
    "valid": _VALID,
}
_SEARCH = {
    "f1": Metric("Word F1 against the best gold answer.", "share", "higher"),
    "em": Metric("Exact matches after SQuAD's normalisation.", "share", "higher"),
    "accuracy": Metric("Answers that contain a gold answer.", "share", "higher"),
    "recall": Metric("Supporting passages that were retrieved.", "share", "higher"),
    "queries": Metric("Queries that the team wrote.", "queries"),
    "documents": Metric("Different passages that it kept of their results.", "passages"),
    "answer_words": Metric("Words of the final answer.", "words"),
}
_TALK = {
    "correct": Metric("Episodes whose final answer is right.", "share", "higher"),
    "answered": Metric("Episodes that end with an answer.", "share", "higher"),
    "rounds": Metric("Exchanges of an episode.", "rounds"),
}
_BUILDING = {
    "score": Metric("Reward of the last turn before the shift.", "reward", "higher"),
    "iou": Metric("Intersection over union of the built and the target cells.", "share", "higher"),
    "extra": Metric("Blocks outside the target.", "blocks", "lower"),
    "rejected": Metric("Lines that are no valid command.", "lines", "lower"),
}
_REASONS = {
    "new": "share no message with the last context",
    "system": "have another system text or other tools",
    "dropped": "omit earlier messages",
    "reordered": "reorder earlier messages",
    "rewritten": "change earlier messages",
    "others": "contain assistant messages that the agent did not write",
}
_PROGRAM = {
    "requests": Metric("Chat completions of an episode.", "requests"),
    "continued": Metric("Requests that extend the agent's last context.", "requests"),
    "reopened": Metric("Requests that open another context.", "requests"),
    **{
        f"reopened_{reason}": Metric(f"Requests whose messages {text}.", "requests")
        for reason, text in _REASONS.items()
    },
    "failed": Metric("Episodes whose program failed.", "share", "lower"),
}

TASK_METRICS: Mapping[str, Mapping[str, Metric]] = {
    "arxiv": _WRITING,
    "tldr": _WRITING,
    "assistant_team": _TALK,
    "debate": _TALK,
    "solver": _TALK,
    "code_loop": {
        "score": Metric("Score of the last program.", "share", "higher"),
        "passed": Metric("Episodes whose last program passes all tests.", "share", "higher"),
        "rounds": Metric("Programs written in an episode.", "rounds", "lower"),
    },
    "coder_tester": {
        "solved": Metric("Programs that pass all golden tests.", "share", "higher"),
        "passed": Metric("Golden tests that pass.", "share", "higher"),
        "rounds": _ROUNDS,
        "valid": _VALID,
    },
    "coop_humaneval": {
        "score": Metric("Reward of the last turn before the shift.", "reward", "higher"),
        "pass": Metric("Programs that pass all tests.", "share", "higher"),
        "tests": Metric("Tests that pass.", "share", "higher"),
        "syntax": Metric("Turns in which both answers parse.", "share", "higher"),
        "uses_aux": Metric("Programs whose main function calls the helper.", "share", "higher"),
    },
    "dataset": {
        "reward": Metric("The team's weighted reward.", "reward", "higher"),
        "reward_FUNCTION": Metric("Reward of one function before its weight.", "reward", "higher"),
        "reward_judge_unreadable": Metric(
            "Replies of the judge without a readable score, per answer.", "replies", "lower"
        ),
        "reward_judge_failed": Metric(
            "Answers that the judge failed to score; they earn `failure_reward`.", "share", "lower"
        ),
    },
    "environment": {
        "reward": Metric("Reward of the environment and the functions.", "reward", "higher"),
        "calls": Metric("Tool calls of an episode.", "calls"),
        "failures": Metric("Tool calls that raised an error.", "calls", "lower"),
    },
    "harbor": {
        "reward": Metric("The verifier's reward; 0 if it gave none.", "reward", "higher"),
        "unverified": Metric("Episodes to which the verifier gave no reward.", "share", "lower"),
        "commands": Metric("Commands of an episode.", "commands"),
    },
    "openenv": {
        "reward": Metric("Sum of the server's rewards.", "reward", "higher"),
        "refused": Metric("Actions that the server refused.", "actions", "lower"),
    },
    "dpomdp": {
        "value": Metric("Sum of the unscaled rewards.", "reward of the model", "higher"),
        "legal": Metric("Episodes without a rejected reply.", "share", "higher"),
    },
    "workflow": {
        "f1": Metric("Word F1 against the best gold answer.", "share", "higher"),
        "em": Metric("Answers equal to a gold answer.", "share", "higher"),
        "accuracy": Metric("Answers that contain a gold answer.", "share", "higher"),
    },
    "gateway": _PROGRAM,
    "harvest": {
        "sold": Metric("Weeks in which both choices were right.", "share", "higher"),
        "luck": Metric("What the weather paid; its mean is 0.", "reward"),
    },
    "house_build": {
        **_BUILDING,
        "health": Metric("Health points left.", "share", "higher"),
        "coverage": Metric("Cells of the house with their own block.", "share", "higher"),
        "match": Metric("Cells, air included, with their own block.", "share", "higher"),
    },
    "math_duo": {
        "solved": Metric("Episodes whose final answer is right.", "share", "higher"),
        "agreed": Metric("Episodes in which all agents give one number.", "share", "higher"),
        "rounds": _ROUNDS,
        "valid": _VALID,
    },
    "open_spiel": {
        "payoff_PLAYER": Metric("Payoff of a player, forfeits included.", "payoff", "higher"),
        "malformed": Metric("Games that end with an unreadable reply.", "share", "lower"),
        "illegal": Metric("Games that end with an illegal move.", "share", "lower"),
    },
    "pettingzoo": {
        "return_PLAYER": Metric("Sum of a player's rewards.", "reward", "higher"),
        "invalid": Metric("Episodes that end with an invalid reply.", "share", "lower"),
    },
    "plan_path": _GRID,
    "sokoban": _GRID,
    "sudoku": _GRID,
    "textarena": {
        "payoff_PLAYER": Metric("Payoff of a player in TextArena's range.", "payoff", "higher"),
        "invalid": Metric("Episodes that end with an invalid action.", "share", "lower"),
        "failed": Metric("Episodes that end with an exception of the game.", "share", "lower"),
    },
    "reasoning_gym": {
        "score": Metric("The package's score of the answer.", "score", "higher"),
        "solved": Metric("Episodes with a score of 1.", "share", "higher"),
    },
    "search_extract": _SEARCH,
    "search_loop": _SEARCH,
    "search_mhgpo": {
        **_SEARCH,
        "penalty_ROLE": Metric("Penalty of a role for its format.", "reward", "higher"),
    },
    "search_parallel": _SEARCH,
    "search_single": _SEARCH,
    "str_build": {
        **_BUILDING,
        "coverage": Metric("Target cells with any block.", "share", "higher"),
        "adjacency": Metric("Touching pairs of blocks with one texture.", "share", "lower"),
    },
    "verifiers": _PROGRAM,
}
"""Metrics by task and name; PLAYER, ROLE and FUNCTION stand for names."""
