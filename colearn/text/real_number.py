"""Reads a number that foreign code returned."""

from __future__ import annotations

import sys
from typing import Any


def real_number(value: Any) -> float:
    """A number as a float: Python's, numpy's and torch's numbers, Decimal and Fraction.

    Errors: TypeError, with the start of the value as its text, for anything else, such as a text,
    or a complex number, whose imaginary part numpy drops.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    try:
        if not isinstance(value, str | bytes) and kind not in ("c", "U", "S"):
            return float(value.detach() if hasattr(value, "detach") else value)  # torch
    except OverflowError:
        raise TypeError(f"a number beyond {sys.float_info.max:g}") from None
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: torch
        pass
    try:
        text = f"{value!r:.60}"
    except ValueError:  # a list with an integer of more than 4,300 digits
        text = f"a {type(value).__name__}"
    raise TypeError(text)
