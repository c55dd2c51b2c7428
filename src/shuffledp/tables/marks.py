"""Marks in numbers written as text: which stands before decimals, which between thousands, and what is ambiguous.

A point is a decimal mark unless `decimal` is a comma. A mark between thousands is never guessed: 1,000 is one, or a
thousand, and whoever is told to say which is told both readings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

THOUSANDS = {",": "[,]", ".": "[.]", "'": "['\u2019]", " ": "[ \u00a0\u2009\u202f]", "_": "[_]"}
"""Marks between thousands, and what they look like in a file."""
_PLAIN = "[+-]?(?:[0-9]+{0}?[0-9]*|{0}[0-9]+)(?:[eE][+-]?[0-9]+)?"


def plain_numbers(texts: pl.Series, decimal: str, thousands: str | None) -> pl.Series:
    """Return numbers as they are written with a decimal point alone; null for what has a mark in another place.

    Parameters
    ----------
    texts : polars Series of text, length n
        Without white space at both ends.
    decimal : str
        The decimal mark, "." or ",".
    thousands : str, optional
        The mark between thousands, a key of `THOUSANDS`; None: there is none.
    """
    if thousands is not None:
        marked = texts.str.contains(THOUSANDS[thousands])
        if marked.any():
            fits = texts.str.contains(f"^{_grouped(decimal, thousands)}$")
            texts = texts.set(marked & ~fits, None).str.replace_all(THOUSANDS[thousands], "")
    if decimal == ",":
        points = texts.str.contains(".", literal=True)
        texts = texts.str.replace(",", ".", literal=True).set(points, None)
    return texts


def text_number(entry: str) -> float | None:
    """Return the number that a text is, with a decimal point alone; NaN for a blank one, None for anything else.

    Examples
    --------
    >>> text_number(" -4.5e3 "), text_number("1_000"), text_number("1,5")
    (-4500.0, None, None)
    """
    text = entry.strip()
    if text and re.fullmatch(_PLAIN.format("[.]") + "|[+-]?(?i:inf|infinity)|(?i:nan)", text) is None:
        return None
    return float(text or "nan")


def way_out(entry: str, decimal: str, thousands: str | None) -> str | None:
    """Say how an entry that is no number may be read as one; None if no mark explains it.

    Of an entry with two readings both are told: whoever follows a hint must not get another number than was written.
    What is said depends on where its marks stand, and not on its digits.

    Parameters
    ----------
    entry : str
        The entry.
    decimal, thousands
        As they were said, see `plain_numbers`.
    """
    text = entry[:80]
    readings = [
        (point, mark)
        for mark in (None, *THOUSANDS)
        for point in (".", ",")
        if _reads(text, point, mark) and (point in text or point == {".": ",", ",": "."}.get(mark or "", decimal))
    ]
    if readings == [(",", None)]:
        return "if the comma is a decimal mark, say so with `decimal = ','`"
    if len(readings) == 1:
        said = [f"`decimal = '{readings[0][0]}'`"] if readings[0][0] != decimal else []
        said += [f"`thousands = '{_said(readings[0][1])}'`"]
        return f"if it has marks between thousands, say so with {' and '.join(said)}"
    if len(readings) < 2:
        return None
    comma = (",", None) in readings
    mark = "," if comma else "."
    other = (f"1.234 with `decimal = '{mark}'`", f"1234 with `thousands = '{mark}'`")
    return (
        f"a {'comma' if comma else 'point'} may be a decimal mark, or stand between thousands: 1{mark}234 is "
        f"{other[0]}, and {other[1]}; say which it is"
    )


def _grouped(decimal: str, thousands: str) -> str:
    """Return what a number with marks between thousands looks like."""
    return f"[+-]?[0-9]{{1,3}}(?:{THOUSANDS[thousands]}[0-9]{{3}})+(?:{re.escape(decimal)}[0-9]*)?"


def _reads(text: str, decimal: str, thousands: str | None) -> bool:
    """Whether a text is a number with these marks, the one between thousands among them."""
    if decimal == thousands:
        return False
    pattern = _PLAIN.format(re.escape(decimal)) if thousands is None else _grouped(decimal, thousands)
    return re.fullmatch(pattern, text) is not None


def _said(mark: str | None) -> str:
    return {" ": "space", "'": "apostrophe"}.get(mark or "", str(mark))
