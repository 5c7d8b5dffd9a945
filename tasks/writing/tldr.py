"""TLDR: two agents summarise one post, in brief and in detail (CoLLM, sections 6.1, E.1, F.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .data import TextSource
from .grammar import POST
from .reference import expanding_pair
from .reward import Band, ScoringRules
from .task import WritingState, WritingTask

_SUMMARY = """\
Create a concise summary response to this post.

Query: {text}

Instructions: Provide a brief and focused summary in a few sentences"""

_ELABORATION = """\
Create a detailed summary response to this post.

Query: {text}

Instructions: You should use transition words to improve flow"""


class TLDR(WritingTask):
    """Two agents each write a summary of the same post.

    The agent `summary` writes a concise summary, and the agent `elaboration` writes a detailed
    summary. Neither agent sees the other's text; both texts are scored in one turn.

    The reward, at most 3.0 (paper) or 2.98 (comlrl), is the sum of five parts. The first three are
    also gates: if a value is outside the range of its part, that part and all later parts earn
    nothing. Points from earlier parts are kept.

        bounds     0.5  both texts have 8 to 256 words
        length     1    characters of the second over the first: full in 1.6-3.2, linear down to 0
                        at 1.1 and at 5.0
        diversity  0.5  different words of the second over the first: full from 2.0, linear down
                        to 0 at 1.3
        style      0.6  Jaccard similarity of the content words, full from 0.03, linear below
        coherence  0.4  k of 12 kinds of transitions occur (`words`)

    The variants differ in

    - coherence: min(0.6 ln(k + 1), 1) in paper, 0.4 + 0.05 (k - 1) in comlrl for k > 0;
    - where transitions count: in both texts in paper, only in the second text in comlrl;
    - matching: whole words in paper; in comlrl substrings, so that "as" counts in "last";
    - diversity: without stop words in paper, all words in comlrl;
    - length: in paper, a run of white space counts as one character inside the text, and as none
      at the ends of the text; in comlrl, all white space counts;
    - the prompt: comlrl also asks for facts, and for different words in the second text.

    The paper leaves the following choices open. The weights of the "weighted sum", the bounds and
    the points kept after a failed gate come from the paper's code. The word lists are colearn's.
    The logarithm is natural, because only with the natural logarithm can 12 kinds reach 1 in
    `arxiv`. Table 1's score is interpreted as the reward divided by its maximum. A long text is not
    truncated. CoMLRL's settings file takes the test texts from another split; in this task, both
    variants use the paper's slices.

    `data`: 'packaged', 32 + 8 invented posts of about 90 words; 'generated', 256 + 64 posts of
    about 40 words from a vocabulary of a few hundred words, for small models; 'hub', the paper's
    slices [0:1000] and [1000:1100] of `trl-lib/tldr`, column `prompt` (extra `tasks`); or the path
    of a .jsonl/.csv file, of which a tenth is the test split. `field` names another column.
    `words` replaces the bounds; with low bounds, answers can be short. `prompt: compact` is for
    small word-level models: a prompt consists of the agent's name and the text's lower-case words,
    separated by single spaces.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra if
    `data: hub` is set without the extra `tasks`.
    """

    agents = ("summary", "elaboration")
    source = TextSource(file="tldr.json", sentences=POST, hub="trl-lib/tldr", field="prompt")
    variants: ClassVar[Mapping[str, ScoringRules]] = {
        "paper": ScoringRules(
            words=(8, 256),
            length=Band(1.1, 1.6, 3.2, 5.0),
            diversity=Band(1.3, 2.0),
            similarity=0.03,
            logarithm=0.6,
        ),
        "comlrl": ScoringRules(
            words=(8, 256),
            length=Band(1.1, 1.6, 3.2, 5.0),
            diversity=Band(1.3, 2.0),
            similarity=0.03,
            logarithm=None,
            second_only=True,
        ),
    }
    prompts: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "paper": {"summary": _SUMMARY, "elaboration": _ELABORATION},
        "comlrl": {
            "summary": f"{_SUMMARY}. Stay with the facts",
            "elaboration": f"{_ELABORATION}, and more varied words than a short summary has",
        },
    }

    def reference_actions(self, state: WritingState) -> dict[str, str]:
        """A constructed pair with the maximum reward, if the bounds in `words` allow 48 words and
        four times the minimum. The pair is built word by word, not as prose."""
        return dict(zip(self.agents, expanding_pair(self.rules, state.item.text), strict=True))
