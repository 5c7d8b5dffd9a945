"""Word lists of the writing tasks: transitions of twelve kinds, and stop words.

The lists are colearn's: the paper names the twelve kinds but prints no list.
"""

from __future__ import annotations

TRANSITIONS: dict[str, tuple[str, ...]] = {
    "elaboration": (
        *("additionally", "also", "along with", "another", "as well as", "besides", "beyond that"),
        *("by extension", "further", "furthermore", "in addition", "including", "moreover"),
        *("not only", "on top of that", "plus", "together with", "too", "what is more"),
    ),
    "examples": (
        *("a case in point", "among others", "as an example", "as an illustration", "e.g."),
        *("exemplified by", "for example", "for instance", "illustrated by", "in one case"),
        *("in particular", "like when", "namely", "notably", "one example", "particularly"),
        *("such as", "take the case of", "to illustrate"),
    ),
    "explanation": (
        *("by this", "clarified by", "i.e.", "in essence", "in other words", "in simple terms"),
        *("in this sense", "meaning that", "more precisely", "or rather", "put differently"),
        *("put simply", "simply put", "specifically", "stated differently", "that is"),
        *("that means", "this means", "to be precise", "to clarify", "to explain", "which means"),
    ),
    "cause_effect": (
        *("accordingly", "as a consequence", "as a result", "because", "because of", "caused by"),
        *("consequently", "due to", "for this reason", "for that reason", "hence", "leading to"),
        *("leads to", "on account of", "owing to", "resulting in", "so", "so that", "thanks to"),
        *("that is why", "thereby", "therefore", "this is why", "thus"),
    ),
    "contrast": (
        *("alternatively", "as opposed to", "but", "by contrast", "contrary to", "conversely"),
        *("differently", "however", "in contrast", "instead", "instead of", "on the contrary"),
        *("on the one hand", "on the other hand", "rather than", "unlike", "versus", "whereas"),
        *("yet",),
    ),
    "sequence": (
        *("at first", "at last", "at the outset", "finally", "first", "firstly", "first of all"),
        *("following this", "fourth", "in the end", "in the first place", "initially", "last"),
        *("lastly", "next", "second", "secondly", "step by step", "subsequently", "then", "third"),
        *("thirdly", "to begin with", "to start with"),
    ),
    "emphasis": (
        *("above all", "actually", "after all", "certainly", "clearly", "crucially", "definitely"),
        *("especially", "essentially", "importantly", "in fact", "indeed", "most of all"),
        *("naturally", "no doubt", "obviously", "of course", "surely", "truly", "undoubtedly"),
        *("without a doubt",),
    ),
    "summary": (
        *("all in all", "all things considered", "altogether", "as a whole", "broadly", "in all"),
        *("in a nutshell", "in brief", "in conclusion", "in short", "in sum", "in summary"),
        *("on balance", "on the whole", "overall", "summing up", "to conclude", "to sum up"),
        *("to summarise", "to summarize", "ultimately"),
    ),
    "comparison": (
        *("akin to", "alike", "analogously", "as with", "by the same token", "comparably"),
        *("compared to", "compared with", "correspondingly", "equally", "in a similar way"),
        *("in comparison", "in like manner", "in the same way", "just as", "just like"),
        *("likewise", "similar to", "similarly"),
    ),
    "concession": (
        *("admittedly", "albeit", "all the same", "although", "be that as it may", "despite"),
        *("even so", "even though", "granted", "in any case", "in spite of", "nevertheless"),
        *("nonetheless", "notwithstanding", "regardless", "still", "though", "to be fair"),
    ),
    "condition": (
        *("as long as", "assuming", "depending on", "else", "even if", "except if", "given that"),
        *("if", "in case", "in that case", "in the event", "only if", "on condition that"),
        *("otherwise", "provided that", "providing", "supposing", "unless", "whether"),
    ),
    "time": (
        *("after", "afterward", "afterwards", "as soon as", "at that time", "at the same time"),
        *("at the time", "before", "by then", "currently", "during", "earlier", "eventually"),
        *("formerly", "immediately", "in the meantime", "later", "meanwhile", "nowadays", "once"),
        *("previously", "recently", "simultaneously", "since then", "soon", "until", "when"),
        *("whenever", "while"),
    ),
}
"""Transitions by kind; each entry belongs to only one kind."""

CONNECTORS = (
    *("first", "however", "thus", "moreover", "indeed", "overall"),
    *("although", "meanwhile", "likewise", "namely", "unless", "specifically"),
)
"""One word of each kind."""

_STOP_WORDS = """
a about above across after again against all am among an and any are aren as at be been before
being below between both but by can cannot could couldn d did didn do does doesn doing don down
during each few for from further had hadn has hasn have haven having he her here hers herself
him himself his how i if in into is isn it its itself just ll m may me might more most must my
myself no nor not now of off on once one only or other ought our ours ourselves out over own re
s same shall shan she should shouldn so some such t than that the their theirs them themselves
then there these they this those through to too under until up upon us ve very was wasn we were
weren what when where which while who whom whose why will with within without won would wouldn
you your yours yourself yourselves
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words without content, and the parts of contractions that `\\w+` matches (don, t, ll, ...)."""

FILLERS = (
    *("answer", "balance", "corner", "detail", "effort", "feature", "garden", "harbour", "island"),
    *("journal", "kitchen", "letter", "market", "notice", "office", "pattern", "quarter"),
    *("reason", "season", "theory", "update", "village", "window", "yellow", "bridge", "circle"),
    *("dinner", "engine", "forest", "ground", "handle", "impact", "jacket", "kernel", "ladder"),
)
"""Words of five to twelve letters for reference answers to texts with too few of them."""
