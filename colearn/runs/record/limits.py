"""Limits of what is read from a run's files, so that no file of a run can end or fill a report."""

from __future__ import annotations

LARGEST = 1e100
"""Largest absolute value of a number that is used: sums of squares of such numbers are finite. A
larger metric counts as not finite."""
MOST = 2**63 - 1
"""Largest count."""
LONGEST_TEXT = 20_000
"""Maximum number of characters of a text (an item, an observation, an action, a picture) that a
page shows."""
MOST_TURNS = 200
"""Maximum number of turns of an episode that a page shows."""
LONGEST_EPISODE = 1_000_000
"""Maximum number of characters of an episode's turns (texts, and pictures as JSON) that a page
shows."""
MOST_CURVES = 100
"""Maximum number of metrics that a page draws in one section, or shows of one episode; all are in
summary.json or in the episode's file."""
