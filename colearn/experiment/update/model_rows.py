"""Training rows of one model in an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from colearn.contract import Learner, Prepared
from colearn.contract.rows import Row


@dataclass(slots=True)
class ModelRows:
    """The rows of an actor or of a value model, by tree number. A minibatch is a set of trees."""

    learner: Learner
    by_tree: dict[int, list[Row]] = field(default_factory=dict)
    _last: tuple[Sequence[int], Prepared] | None = None

    def prepared(self, numbers: Sequence[int]) -> Prepared:
        """Returns the rows of the trees `numbers`, divided into micro-batches by the learner. A
        call with the same trees as the previous call reuses the micro-batches."""
        if self._last is None or self._last[0] != numbers:
            groups = [[row] for number in numbers for row in self.by_tree.get(number, ())]
            self._last = numbers, self.learner.prepare(groups)
        return self._last[1]
