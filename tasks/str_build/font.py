"""Two fonts drawn for this library (A-Z and 0-9), and the grids of strings in these fonts.

Letters of `large` have 5x5 cells; with two columns between letters, ICML fills 46 of 26x5 cells, as
in the paper's target. Letters of `small` have 3x3 cells, for word-level models with short contexts.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

_LARGE = """
A .###. #...# ##### #...# #...#
B ####. #...# ####. #...# ####.
C .#### #.... #.... #.... .####
D ####. #...# #...# #...# ####.
E ##### #.... ####. #.... #####
F ##### #.... ####. #.... #....
G .#### #.... #..## #...# .####
H #...# #...# ##### #...# #...#
I ##### ..#.. ..#.. ..#.. #####
J ..### ...#. ...#. #..#. .##..
K #...# #..#. ###.. #..#. #...#
L #.... #.... #.... #.... #####
M #...# ##.## #.#.# #...# #...#
N #...# ##..# #.#.# #..## #...#
O .###. #...# #...# #...# .###.
P ####. #...# ####. #.... #....
Q .###. #...# #.#.# #..#. .##.#
R ####. #...# ####. #..#. #...#
S .#### #.... .###. ....# ####.
T ##### ..#.. ..#.. ..#.. ..#..
U #...# #...# #...# #...# .###.
V #...# #...# #...# .#.#. ..#..
W #...# #...# #.#.# ##.## #...#
X #...# .#.#. ..#.. .#.#. #...#
Y #...# .#.#. ..#.. ..#.. ..#..
Z ##### ...#. ..#.. .#... #####
0 .###. #..## #.#.# ##..# .###.
1 ..#.. .##.. ..#.. ..#.. .###.
2 ####. ....# .###. #.... #####
3 ####. ....# .###. ....# ####.
4 #..#. #..#. ##### ...#. ...#.
5 ##### #.... ####. ....# ####.
6 .###. #.... ####. #...# .###.
7 ##### ....# ...#. ..#.. ..#..
8 .###. #...# .###. #...# .###.
9 .###. #...# .#### ....# .###.
"""

_SMALL = """
A .#. ### #.#
B ##. ### ##.
C ### #.. ###
D ##. #.# ##.
E ### ##. ###
F ### ##. #..
G ##. #.# ###
H #.# ### #.#
I ### .#. ###
J ..# #.# ###
K #.# ##. #.#
L #.. #.. ###
M ### ### #.#
N ### #.# #.#
O ### #.# ###
P ### ### #..
Q ##. ##. ..#
R ### ##. #.#
S .## .#. ##.
T ### .#. .#.
U #.# #.# ###
V #.# #.# .#.
W #.# ### ###
X #.# .#. #.#
Y #.# .#. ..#
Z ##. .#. .##
0 .#. #.# .#.
1 ##. .#. ###
2 ##. .## ###
3 ### .## ###
4 #.# ### ..#
5 .## ##. ##.
6 #.. ### ###
7 ### ..# ..#
8 ### ### ###
9 ### ### ..#
"""


def _glyphs(drawing: str) -> dict[str, tuple[str, ...]]:
    return {line[0]: tuple(line[2:].split()) for line in drawing.strip().splitlines()}


FONTS = MappingProxyType({"large": _glyphs(_LARGE), "small": _glyphs(_SMALL)})
SPACING = MappingProxyType({"large": 2, "small": 1})
"""Number of empty columns between two letters, by font."""


def unknown_characters(text: str) -> str:
    """The characters of `text` that no font draws; lower case counts as upper case."""
    return "".join(char for char in text if char.upper() not in FONTS["large"])


@lru_cache(maxsize=1024)
def draw(text: str, font: str) -> tuple[str, ...]:
    """Returns the rows of `text` from the top. All rows are equally wide and consist of '#' (build)
    and '.' (leave empty)."""
    letters = [FONTS[font][char] for char in text.upper()]
    return tuple(("." * SPACING[font]).join(rows) for rows in zip(*letters, strict=True))
