"""Casts shipped with colearn, by name. A cast decides which player acts for each agent."""

NAMES = {
    "against": "seats:Against",
    "league": "league:League",
    "own": "seats:Own",
    "swap": "seats:Swap",
}
