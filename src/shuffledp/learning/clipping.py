"""What is clipped decides what a message can change by: sensitivity is derived here, and typed in nowhere.

A client with m examples sends one message, an average of gradients. Neighbours replace one unit:

    unit "example", every example's gradient clipped to C:   |message - message'| <= 2 C/m
    unit "client",  the message (or every example) clipped:  |message - message'| <= 2 C

Clipping only the average to C and claiming 2 C/m is refused: see `refuse_clipped_average`. Norms are Euclidean for
Gaussian noise, sums of absolute values for Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput, shown
from shuffledp.learning.network import Network
from shuffledp.numerics.floats import inflated, roundoff
from shuffledp.numerics.interval import FloatArray

Unit = Literal["client", "example"]
Clipped = Literal["examples", "message"]
UNITS: tuple[Unit, ...] = ("client", "example")
CLIPPED: tuple[Clipped, ...] = ("examples", "message")
UNIT_MEANING: dict[str, str] = {
    "client": "all examples of one client are replaced",
    "example": "one example of one client is replaced; how many it has is public",
}
_NUMBERS = 1 << 18  # of one layer in one pass: bounds the memory of large clients, and stays in cache
_EXAMPLES = 64, 1024  # in one pass, at least and at most


@dataclass(frozen=True)
class Clipping:
    """How a message is bounded, and for whom.

    Parameters
    ----------
    unit : {"client", "example"}
        What neighbours replace.
    clipped : {"examples", "message"}
        Every example's gradient before averaging, or the average as a whole.
    bound : float
        C, positive and finite: the largest norm.
    order : {1, 2}
        Sum of absolute values, or Euclidean.

    Raises
    ------
    InvalidInput
        On an unknown choice or a bad bound, and on unit "example" with only the message clipped.

    Examples
    --------
    >>> bool(Clipping("example", "examples", 2.0, 2).sensitivity(600, 128) < 4.0 / 600 * (1 + 1e-9))
    True
    """

    unit: Unit
    clipped: Clipped
    bound: float
    order: Literal[1, 2]

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InvalidInput(f"unit must be one of {', '.join(UNITS)}; got {shown(self.unit)}")
        if self.clipped not in CLIPPED:
            raise InvalidInput(f"clipped must be one of {', '.join(CLIPPED)}; got {shown(self.clipped)}")
        try:
            bound = float(self.bound)
        except (TypeError, ValueError):
            bound = math.nan
        if not (0.0 < bound < 1e100):
            raise InvalidInput(f"clip must be a positive, finite number; got {shown(self.bound)}")
        if self.unit == "example" and self.clipped == "message":
            refuse_clipped_average(bound)

    def sensitivity(self, examples: int | NDArray[np.int64], numbers: int) -> FloatArray:
        """How far a message, as computed in double precision, can move when one unit is replaced.

        Parameters
        ----------
        examples : int or ndarray of int, at least 1
            m, examples of the client; public.
        numbers : int
            Numbers in a message.

        Returns
        -------
        ndarray, shape of examples
            2 C/m or 2 C, plus rounding. Norms of vectors of up to ``numbers`` entries are good to (numbers + 16)
            roundoffs, and a sum of m vectors of norm C to m roundoffs m C, in either world (docs/learning.md).
        """
        m = np.asarray(examples, dtype=np.float64)
        whole = 2.0 * self.bound * (1.0 / m if self.unit == "example" else np.ones_like(m))
        # an average of m terms of norm C is off by (m + 4) roundoffs C at most, in each world
        return inflated(whole, 2.0 * (numbers + 16.0)) + roundoff(2.0 * (m + 4.0), 2.0 * self.bound)

    def message(
        self, network: Network, weights: FloatArray, features: FloatArray, labels: NDArray[np.int64]
    ) -> FloatArray:
        """Return the clipped average gradient of one client's examples, shape (network.size,); always finite.

        An example whose gradient is not finite contributes zero, and so does a message that is clipped as a whole and
        is not finite: nothing that can be seen outside tells of it.

        Parameters
        ----------
        network : Network
            The model.
        weights : ndarray, shape (network.size,)
            Where it stands.
        features : ndarray, shape (m, inputs)
            The client's examples, m >= 1.
        labels : ndarray of int64, shape (m,)
            Theirs.
        """
        m = labels.size
        total: FloatArray | None = None
        at_once = min(max(_NUMBERS // max(network.widths), _EXAMPLES[0]), _EXAMPLES[1])
        for start in range(0, m, at_once):
            passed = network.backward(weights, features[start : start + at_once], labels[start : start + at_once])
            factors = None
            if self.clipped == "examples":
                factors = shrink(network.gradient_norms(passed, self.order), self.bound)
            part = network.weighted_sum(passed, factors)
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            raise InvalidInput("a client without examples has no message; leave it out")
        total /= m
        return shortened(total, self.bound, self.order) if self.clipped == "message" else total


def shrink(norms: FloatArray, bound: float) -> FloatArray:
    """Factors min(1, bound/norm) that bring vectors of these norms to the bound; 0 where a norm is not finite."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(np.isfinite(norms), np.minimum(1.0, bound / norms), 0.0)


def shortened(vector: FloatArray, bound: float, order: int) -> FloatArray:
    """Clip one vector in place; one whose norm is not finite becomes zero.

    Parameters
    ----------
    vector : ndarray, shape (numbers,)
        Any numbers.
    bound : float
        Largest norm, positive.
    order : {1, 2}
        1 sums absolute values, 2 is Euclidean.
    """
    factor = float(shrink(np.array([float(np.linalg.norm(vector, ord=order))]), bound)[0])
    if factor > 0.0:
        vector *= factor
    else:
        vector[:] = 0.0
    return vector


def refuse_clipped_average(bound: float) -> NoReturn:
    """Say why the average's clipping bounds no single example's part.

    Raises
    ------
    InvalidInput
        Always.
    """
    raise InvalidInput(
        f"clipping the average to {bound:g} does not bound one example's part in it: the message may move by "
        f"{2 * bound:g} when one example is replaced, not by {2 * bound:g}/m. Clip examples (clipped='examples'), "
        "or protect whole clients (unit='client')"
    )
