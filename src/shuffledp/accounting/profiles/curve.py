"""What a table of knots asks of a privacy profile."""

from __future__ import annotations

from typing import Protocol

from shuffledp.numerics.floats import Upper
from shuffledp.numerics.interval import Interval


class Curve(Protocol):
    """What a table asks of a profile; `PrivacyProfile` says what each member means."""

    @property
    def vanishes_at(self) -> Upper:
        """From here on delta is zero."""
        ...

    @property
    def mass_at_infinity(self) -> Interval:
        """The limit of delta for large epsilon."""
        ...

    @property
    def directed(self) -> bool:
        """Whether the two directions differ."""
        ...

    @property
    def coarseness(self) -> float:
        """Factor on what knots may cost in accuracy."""
        ...

    def delta(self, epsilon: float) -> Interval:
        """The hockey-stick divergence, the larger direction."""
        ...

    def log_delta_pair(self, epsilon: float) -> tuple[Interval, Interval]:
        """The logarithms of both directions."""
        ...

    def test_masses(self, epsilon: float) -> tuple[Interval, Interval] | None:
        """Slopes of a witness's tests."""
        ...
