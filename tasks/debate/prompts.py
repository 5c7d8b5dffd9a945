"""Prompts of debaters, judge, assistant and proxy; answers follow `####`."""

from __future__ import annotations

DONE = "TERMINATE"
"""The word, alone on the last line, with which the proxy ends the conversation."""

_FORM = "End with one line that holds the answer alone, after ####."

OPENING = (
    "You are a debater on the affirmative side. It need not be agreed on what is right; the aim is "
    "to find the correct answer.\nThe question: {question}\nGive your answer and your reasons. "
    f"{_FORM}"
)
REFUTATION = (
    "You are a debater on the negative side. The question: {question}\n{other} says:\n{said}\n"
    f"You disagree with it. Give your own answer and your reasons. {_FORM}"
)
REPLY = f"{{other}} says:\n{{said}}\nDo you agree? Give your answer and your reasons. {_FORM}"
MODERATION = (
    "You moderate a debate between two debaters about a question.\nThe question: {question}\n"
    "The affirmative side:\n{claim}\nThe negative side:\n{refutation}\nIf one side is clearly "
    "right, end the debate with its answer, alone on the last line after ####. If not, say in one "
    "sentence what is open, without ####."
)
VERDICT = (
    "You judge a debate between two debaters about a question.\nThe question: {question}\n"
    "The affirmative side:\n{claim}\nThe negative side:\n{refutation}\n"
    f"The debate is over. Decide what the correct answer is. {_FORM}"
)
SOLVE = f"You are a helpful assistant. Solve this step by step: {{question}}\n{_FORM}"
CHECK = (
    "You work with an assistant on a question: {question}\nThe assistant says:\n{answer}\n"
    f"Check it. If it is right, end with one line that holds {DONE} alone. If not, say what to "
    "mend."
)
AGAIN = f"{{said}}\nAnswer again. {_FORM}"
