"""Every error the library raises on purpose.

    ShuffleDPError
    ├── InvalidInput         a value breaks a stated rule (also a ValueError)
    ├── OutOfRegime          a theorem's hypotheses do not fit the question
    ├── NotConverged         a numerical search or sum could not be certified
    └── InconsistentBounds   an upper bound fell below a witness: a bug in shuffledp, never smoothed over

A message is one line: what, which value, what to do.
"""

from __future__ import annotations


class ShuffleDPError(Exception):
    """Base of every error raised on purpose by shuffledp."""


class InvalidInput(ShuffleDPError, ValueError):
    """A value given by the caller breaks a stated rule; the message names value, rule and way out."""


class OutOfRegime(ShuffleDPError):
    """A bound was asked a question its theorem does not answer; the message names the condition."""


class NotConverged(ShuffleDPError):
    """A numerical result could not be certified; nothing smaller than the truth is returned instead."""


class InconsistentBounds(ShuffleDPError):
    """A certified upper bound lies below a witness, which a correct library never reports."""
