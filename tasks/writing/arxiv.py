"""arXiv: two agents expand an abstract to an introduction (CoLLM, sections 6.1, E.1, F.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .data import TextSource
from .grammar import ABSTRACT
from .reference import matching_pair
from .reward import Band, ScoringRules
from .task import WritingState, WritingTask

_PROMPT = """\
Based on the following scientific abstract, expand the content for the introduction section.

Abstract: {text}

Instructions:
- There is another agent that will provide the OTHER
- You just need to focus on the OWN
- Avoid repeating AVOID content"""

_BACKGROUND = (
    _PROMPT.replace("OTHER", "method and implications")
    .replace("OWN", "background and motivation")
    .replace("AVOID", "methodology and implications")
)
_METHOD = (
    _PROMPT.replace("OTHER", "background and motivation")
    .replace("OWN", "method and implications")
    .replace("AVOID", "background and motivation")
)
_PROMPTS = {"background": _BACKGROUND, "method": _METHOD}


class ArXiv(WritingTask):
    """Two agents each write one part of an introduction from an abstract.

    The agent `background` writes the background and motivation, and the agent `method` writes the
    method and implications. Neither agent sees the other's text; both texts are scored in one turn.

    The reward, at most 3.0 (paper) or 2.98 (comlrl), is the sum of five parts. The first three are
    also gates: if a value is outside the range of its part, that part and all later parts earn
    nothing. Points from earlier parts are kept.

        bounds     0.5  both texts have 128 to 256 words
        length     1    characters of the second over the first
                        paper   full in 1.0-1.3, linear down to 0 at 0.8 and at 1.5
                        comlrl  full in 1.3-1.6, linear down to 0 at 0.8 and at 2.0
        diversity  0.5  different words of the second over the first: full in 0.7-1.3, linear down
                        to 0 at 0.5 and at 1.7
        style      0.6  Jaccard similarity of the content words, full from 0.23, linear below
        coherence  0.4  k of 12 kinds of transitions occur in the two texts (`words`)

    The variants differ further in

    - coherence: min(0.4 ln(k + 1), 1) in paper, 0.4 + 0.05 (k - 1) in comlrl for k > 0;
    - matching: whole words in paper; in comlrl substrings of the two texts, concatenated without a
      separator, so that "as" counts in "last";
    - diversity: without stop words in paper, all words in comlrl;
    - length: in paper, a run of white space counts as one character inside the text, and as none
      at the ends of the text; in comlrl, all white space counts.

    The paper leaves the following choices open. The weights of the "weighted sum", the bounds, the
    points kept after a failed gate and the abstracts (`OpenMLRL/arXiv_abstract`) come from the
    paper's code. Diversity leaves out stop words, as in TLDR. The word lists are colearn's. The
    logarithm is natural, because only with the natural logarithm can 12 kinds reach 1. Table 1's
    score is interpreted as the reward divided by its maximum. With 256 new tokens, a minimum of 128
    words leaves each agent little room.

    `data`: 'packaged', 32 + 8 invented abstracts of about 75 words; 'generated', 256 + 64 abstracts
    of about 35 words from a vocabulary of a few hundred words, for small models; 'hub', the paper's
    slices [0:1000] and [1000:1100] of `OpenMLRL/arXiv_abstract`, column `abstract` (extra `tasks`);
    or the path of a .jsonl/.csv file, of which a tenth is the test split. `field` names
    another column. `words` replaces the bounds; with low bounds, answers can be short. `prompt:
    compact` is for small word-level models: a prompt consists of the agent's name and the text's
    lower-case words, separated by single spaces.

    Errors: ConfigError from the constructor, one line that names the setting; MissingExtra if
    `data: hub` is set without the extra `tasks`.
    """

    agents = ("background", "method")
    source = TextSource(
        file="arxiv.json", sentences=ABSTRACT, hub="OpenMLRL/arXiv_abstract", field="abstract"
    )
    variants: ClassVar[Mapping[str, ScoringRules]] = {
        "paper": ScoringRules(
            words=(128, 256),
            length=Band(0.8, 1.0, 1.3, 1.5),
            diversity=Band(0.5, 0.7, 1.3, 1.7),
            similarity=0.23,
            logarithm=0.4,
        ),
        "comlrl": ScoringRules(
            words=(128, 256),
            length=Band(0.8, 1.3, 1.6, 2.0),
            diversity=Band(0.5, 0.7, 1.3, 1.7),
            similarity=0.23,
            logarithm=None,
        ),
    }
    prompts: ClassVar[Mapping[str, Mapping[str, str]]] = {"paper": _PROMPTS, "comlrl": _PROMPTS}

    def reference_actions(self, state: WritingState) -> dict[str, str]:
        """A constructed pair with the maximum reward, if the bounds in `words` allow 26 words and
        twice the minimum. The pair is built word by word, not as prose."""
        return dict(zip(self.agents, matching_pair(self.rules, state.item.text), strict=True))
