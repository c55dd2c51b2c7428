"""How a table is written, where that is not to be found out."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from shuffledp.errors import InvalidInput, shown
from shuffledp.tables.marks import THOUSANDS
from shuffledp.tables.spelling import canonical

BLANKS = "blanks"
"""The separator of tables for people's eyes: any run of blanks and tabs."""
MOST_LINES = 1000
"""Lines above a header, and rows of it, that are left out."""


@dataclass(frozen=True)
class TableOptions:
    """How a table is written, where that is not to be found out.

    An option that says nothing of a table is refused when the table is opened: the first five are about text.

    Parameters
    ----------
    separator : str, optional
        The one ASCII character between two fields; ``"tab"`` for a tab, ``"blanks"`` for any run of blanks and tabs. By
        default the one of comma, semicolon, tab and bar that cuts all of the first rows into equally many fields, or
        what a first line such as ``sep=;`` says.
    encoding : str, optional
        Any that Python knows, such as ``"cp1252"``. By default UTF-8, or UTF-16 or UTF-32 if the file begins with their
        mark.
    decimal : str
        The decimal mark of numbers written as text, ``"."`` or ``","``.
    thousands : str, optional
        The mark between thousands: ``","``, ``"."``, ``"_"``, ``"apostrophe"`` or ``"space"``. By default there is
        none, and a number that may have one is refused with both its readings.
    show_values : bool
        Whether a refusal of an entry shows what stands in the row: for whoever holds the table. By default it names
        the row and the rule alone.
    skip_lines : int
        Lines above the header that belong to no table, such as a title; from 0 to 1,000.
    header_rows : int
        Rows of the header, from 1 to 1,000. The first one holds the names; the others describe the columns, as in the
        exports of survey tools, and are nobody's.
    missing_values : tuple of str
        Words that mean, in every column, that an entry is missing, besides an empty one: ``(".", "#N/A", "-99")``. An
        entry is such a word if it is the same word (`shuffledp.tables.canonical`), and in a column of numbers also if
        it is the same number.

    Raises
    ------
    InvalidInput
        If one of them is no such thing.

    Examples
    --------
    >>> TableOptions(separator=";", decimal=",").separator
    ';'
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str | None = None
    show_values: bool = False
    skip_lines: int = 0
    header_rows: int = 1
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_marks()
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, ValueError):
                raise InvalidInput(
                    f"`encoding` must be one that Python knows, such as utf-8 or cp1252; got {shown(self.encoding)}",
                    "encoding",
                ) from None
        for name, least in (("skip_lines", 0), ("header_rows", 1)):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MOST_LINES:
                raise InvalidInput(
                    f"`{name}` must be a whole number from {least} to {MOST_LINES:,}; got {shown(count)}", name
                )
        if isinstance(self.missing_values, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"`missing_values` must be a list of words, not the text {shown(self.missing_values)}", "missing_values"
            )
        words = tuple(canonical(str(word)) for word in self.missing_values)
        if not all(words):
            raise InvalidInput("`missing_values` need not name the empty entry, which is missing", "missing_values")
        object.__setattr__(self, "missing_values", words)

    def _check_marks(self) -> None:
        mark = {"tab": "\t", "\\t": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", mark)
        plain = mark is None or (len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in '"\r\n\0')
        if not plain and mark != BLANKS:
            raise InvalidInput(
                f"`separator` must be one ASCII character, such as ; or tab, or blanks; got {shown(mark)}", "separator"
            )
        if self.decimal not in (".", ",") or self.decimal == mark:
            raise InvalidInput(f"`decimal` must be . or , and not the separator; got {shown(self.decimal)}", "decimal")
        between = {"space": " ", "apostrophe": "'"}.get(self.thousands or "", self.thousands)
        object.__setattr__(self, "thousands", between)
        if between is not None and (between not in THOUSANDS or between == self.decimal):
            raise InvalidInput(
                "`thousands` must be one of , . _ apostrophe and space, and not the decimal mark; got "
                f"{shown(self.thousands)}",
                "thousands",
            )

    def refuse_for_text(self, what: str, also: tuple[str, ...] = ()) -> None:
        """Refuse an option that says nothing of what is read, which is no text file.

        Parameters
        ----------
        what : str
            What is read instead, such as "people.parquet is Parquet".
        also : tuple of str
            More options that say nothing of it.

        Raises
        ------
        InvalidInput
            For the first option that is stated.
        """
        stated = TableOptions()
        for name in ("separator", "encoding", "skip_lines", "header_rows", *also):
            if getattr(self, name) != getattr(stated, name):
                raise InvalidInput(
                    f"`{name}` is about tables{'' if name in also else ' of text'}, and {what}; leave it out", name
                )


AS_FOUND = TableOptions()
"""Nothing is said, all is found out."""
