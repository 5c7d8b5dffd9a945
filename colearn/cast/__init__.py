"""The shipped casts: who sits in which seat, by name."""

NAMES = {
    "against": "seats:Against",
    "league": "league:League",
    "own": "seats:Own",
    "swap": "seats:Swap",
}
