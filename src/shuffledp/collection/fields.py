"""Strict reading of the collection's JSON documents: known keys only, each of a stated type.

Otherwise one InvalidInput.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from shuffledp.errors import InvalidInput, shown

T = TypeVar("T")
LONGEST_TEXT = 2000
LONGEST_LAW = 10_000
"""Largest number of integers of a law whose length is not fixed."""
LARGEST = 10**15
"""Largest absolute value of a number, up to which JavaScript reads every whole number exactly."""
Text = Mapping[str, str]
"""The same text in one or several languages, by language code such as ``"en"``."""

_LANGUAGE = re.compile(r"[a-z]{2,3}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_DIGITS = re.compile(r"0|[1-9]\d{0,19}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9_-]*")
_FORBIDDEN = {"Cc", "Cs", "Cn", "Co", "Zl", "Zp"}
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
FILLERS = "\u115f\u1160\u3164\uffa0"
"""Characters that Unicode classifies as letters but that are invisible."""
"""Letters that turn the direction of writing: a text could then show something else than it says."""


def read_json(data: bytes, what: str, most: int) -> Fields:
    """Return the fields of a JSON object: UTF-8, no key twice, finite numbers, at most `most` bytes.

    Parameters
    ----------
    data : bytes
        The document.
    what : str
        Its name, for messages, such as ``"the draft"``.
    most : int
        Largest length in bytes.

    Raises
    ------
    InvalidInput
        If it is no such document.
    """
    if len(data) > most:
        raise InvalidInput(f"{what} has {len(data)} bytes; at most {most} are read")
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(f"{what} is not JSON as expected: {reason}") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{what} must be a JSON object; got {type(document).__name__}")
    return Fields(document, what)


class Fields:
    """The keys of a JSON object, each of which is read once; `done` refuses the rest.

    Parameters
    ----------
    values : dict
        The object.
    what : str
        Its name, for messages.
    """

    def __init__(self, values: dict[str, Any], what: str) -> None:
        self._values, self.what = dict(values), what
        self._known: dict[str, None] = {}

    def refuse(self, key: str, value: object, rule: str) -> NoReturn:
        """Refuse the value of one key; ``rule`` says what it must be."""
        raise InvalidInput(f"{self.what}: {shown(key)} must be {rule}; got {shown(value)}")

    def take(self, key: str) -> Any:
        """Return a value of any type, and mark its key as read."""
        self._known[key] = None
        if key not in self._values:
            raise InvalidInput(f"{self.what}: the key {shown(key)} is missing")
        return self._values.pop(key)

    def require(self, lines: Mapping[str, str], *beside: str) -> None:
        """Refuse values without some of these keys: the message names all that are missing.

        If there is an unknown key, the message names that and all known ones: it may be a missing key, misspelt.

        Parameters
        ----------
        lines : mapping of str to str
            A line that sets each key, as an example.
        *beside : str
            The keys that may stand beside them.
        """
        gone = [key for key in lines if key not in self._values]
        if gone:
            allowed = dict.fromkeys((*self._known, *lines, *beside))
            if unknown := self.unknown(*allowed):
                raise InvalidInput(f"{self.what}: {unknown}; known are {', '.join(allowed)}")
            named, they = ", ".join(gone), "key" if len(gone) == 1 else "keys"
            raise InvalidInput(f"{self.what}: missing {they} {named}; write {', '.join(lines[key] for key in gone)}")

    def has(self, key: str) -> bool:
        """Return whether a key is present and not read yet."""
        self._known[key] = None
        return key in self._values

    def peek(self, key: str) -> Any:
        """Return a value without marking its key as read; None if it is absent."""
        return self._values.get(key)

    def names(self) -> list[str]:
        """Return the keys that are not read yet."""
        return list(self._values)

    def unknown(self, *later: str) -> str:
        """Return words on the first key that is neither known nor in ``later``, with the nearest known one; or ""."""
        key = next((key for key in self._values if key not in self._known and key not in later), None)
        if key is None:
            return ""
        near = difflib.get_close_matches(key, [*self._known, *later], n=1, cutoff=0.7)
        return f"unknown key {shown(key)}{f' (did you mean {near[0]}?)' if near else ''}"

    def done(self) -> None:
        """Refuse keys that were not read; the message lists those that were asked for."""
        if self._values:
            unknown = self.unknown() or f"unknown key {shown(next(iter(self._values)))}"
            raise InvalidInput(f"{self.what}: {unknown}; known are {', '.join(self._known)}")

    def whole(self, key: str, low: int, high: int) -> int:
        """Read a whole number from ``low`` to ``high``."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(key, value, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str, low: float = -LARGEST, high: float = LARGEST) -> float:
        """Read a number from ``low`` to ``high`` as a double."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.refuse(key, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        """Read a list of `count` numbers as doubles."""
        entries = self.list_of(key, count, count)
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int | float) or not -LARGEST <= entry <= LARGEST:
                self.refuse(key, entry, f"numbers from {-LARGEST:g} to {LARGEST:g}")
        return tuple(float(entry) for entry in entries)

    def flag(self, key: str) -> bool:
        """Read a value that is true or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            self.refuse(key, value, "true or false")
        return value

    def word(self, key: str, *known: str) -> str:
        """Read one of the words in ``known``."""
        value = self.take(key)
        if value not in known:
            self.refuse(key, value, f"one of {', '.join(known)}")
        return value

    def line(self, key: str, longest: int = 200) -> str:
        """Read a text of one line, not empty, of at most ``longest`` characters."""
        return self._line(key, self.take(key), longest)

    def text(self, key: str, languages: frozenset[str] | None = None) -> Text:
        """Read a text in one or several languages; in exactly `languages` if they are given."""
        return self._text(key, self.take(key), languages)

    def texts(self, key: str, low: int, high: int, languages: frozenset[str]) -> tuple[Text, ...]:
        """Read a list of `low` to `high` texts, each in exactly these languages."""
        return tuple(self._text(key, entry, languages) for entry in self.list_of(key, low, high))

    def list_of(self, key: str, low: int, high: int) -> list[Any]:
        """Read a list of `low` to `high` values of any type."""
        value = self.take(key)
        if not isinstance(value, list) or not low <= len(value) <= high:
            rule = f"a list of {low} to {high}" if low < high else f"a list of {low}"
            if isinstance(value, list):
                raise InvalidInput(f"{self.what}: {shown(key)} must be {rule}; got {len(value):,}")
            self.refuse(key, value, rule)
        return value

    def objects(self, key: str, low: int, high: int, read: Callable[[Fields], T]) -> tuple[T, ...]:
        """Read a list of `low` to `high` objects, each by the function `read`."""
        entries: list[T] = []
        for place, entry in enumerate(self.list_of(key, low, high)):
            entries.append(self._object(f"{key}, number {place + 1}", entry, read))
        return tuple(entries)

    def object(self, key: str, read: Callable[[Fields], T]) -> T:
        """Read a value that is one object by the function `read`."""
        return self._object(key, self.take(key), read)

    def words64(self, key: str, count: int, most: int = 2**64 - 1) -> tuple[int, ...]:
        """Read a list of integers up to `most`, written as decimal text, because JavaScript would round numbers.

        The list has `count` integers, or 1 to 10,000 if `count` is negative.
        """
        integers: list[int] = []
        for entry in self.list_of(key, *((count, count) if count >= 0 else (1, LONGEST_LAW))):
            if not isinstance(entry, str) or not _DIGITS.fullmatch(entry) or int(entry) > most:
                self.refuse(key, entry, "integers over 2^64, each written as text in decimal digits")
            integers.append(int(entry))
        return tuple(integers)

    def wholes(self, key: str, count: int, high: int) -> tuple[int, ...]:
        """Read a list of `count` whole numbers from 0 to `high`."""
        entries = self.list_of(key, count, count)
        for entry in entries:
            if isinstance(entry, bool) or not isinstance(entry, int) or not 0 <= entry <= high:
                self.refuse(key, entry, f"whole numbers from 0 to {high}")
        return tuple(entries)

    def bytes_of(self, key: str, length: int) -> bytes:
        """Read bytes written in base64url without padding: `length` bytes, or any number if `length` is negative."""
        value = self.take(key)
        decoded = from_base64(value) if isinstance(value, str) else None
        if decoded is None or (length >= 0 and len(decoded) != length):
            self.refuse(key, value, f"{length} bytes in base64url" if length >= 0 else "bytes in base64url")
        return decoded

    def time(self, key: str) -> int:
        """Read a point in time in UTC, such as ``"2030-01-31T08:00:00Z"``, as seconds since 1970."""
        value = self.take(key)
        seconds = read_time(value) if isinstance(value, str) else None
        if seconds is None:
            self.refuse(key, value, "a time in UTC such as 2030-01-31T08:00:00Z")
        return seconds

    def day(self, key: str) -> str:
        """Read a day of the calendar, such as ``"2030-01-31"``."""
        value = self.take(key)
        if not isinstance(value, str) or not _DAY.fullmatch(value) or read_time(f"{value}T00:00:00Z") is None:
            self.refuse(key, value, "a day of the calendar such as 2030-01-31")
        return value

    def web_address(self, key: str) -> str:
        """Read an address that begins with https:// (or http://)."""
        value = self.line(key, 500)
        if not re.fullmatch(r"https?://[^\s\"'<>\\]+", value):
            self.refuse(key, value, "an address that begins with https://")
        return value

    def _line(self, key: str, value: object, longest: int) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > longest or not _plain(value):
            self.refuse(key, value, f"a text of one line, of 1 to {longest} letters")
        return value

    def _text(self, key: str, value: object, languages: frozenset[str] | None) -> Text:
        if not isinstance(value, dict) or not value or not all(_LANGUAGE.fullmatch(str(name)) for name in value):
            self.refuse(key, value, 'a text by language, such as {"en": "yes", "de": "ja"}')
        if languages is not None and frozenset(value) != languages:
            self.refuse(key, value, f"given in the languages of the title: {', '.join(sorted(languages))}")
        return {language: self._line(key, entry, LONGEST_TEXT) for language, entry in value.items()}

    def _object(self, key: str, value: object, read: Callable[[Fields], T]) -> T:
        if not isinstance(value, dict):
            self.refuse(key, value, "a JSON object")
        fields = Fields(value, f"{self.what}, {key}")
        parsed = read(fields)
        fields.done()
        return parsed


def to_base64(data: bytes) -> str:
    """Return bytes in base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64(text: str) -> bytes | None:
    """Return the bytes that `to_base64` wrote; None for anything else, also for another spelling of the same bytes."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if to_base64(data) == text else None


def dump_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as UTF-8 on one line; infinities and NaN raise ValueError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def read_time(text: str) -> int | None:
    """Return the seconds since 1970 that `write_time` wrote; None for anything else."""
    try:
        if _TIME.fullmatch(text):
            return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:  # such as the 31st of February
        pass
    return None


def write_time(seconds: int) -> str:
    """Return a point in time, in seconds since 1970, in the form that `Fields.time` reads."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(text: str) -> bool:
    return not any(unicodedata.category(letter) in _FORBIDDEN or letter in _TURNING for letter in text)


def visible(text: str) -> str:
    """Return a text reduced to what readers can tell apart: no capitals, single spaces, no invisible characters."""
    plain = unicodedata.normalize("NFKC", text).upper().lower()
    return " ".join("".join(letter for letter in plain if not _shows_nothing(letter)).split())


def slug(text: str) -> str:
    """Return a text as part of a file name: at most 40 lower-case letters, digits and -; possibly empty.

    Examples
    --------
    >>> slug("Küche & Lager 2")
    'kuche-lager-2'
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")


def _shows_nothing(letter: str) -> bool:
    return unicodedata.category(letter) == "Cf" or letter in FILLERS or 0xFE00 <= ord(letter) <= 0xFE0F


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return mapping


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
