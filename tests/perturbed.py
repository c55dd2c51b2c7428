"""Another machine, imitated: exp, expm1, log and log1p of NumPy and of `math` with another last digit.

`pytest --perturbed SEED` installs it before anything of this package is imported, and
`python -m tests.perturbed SEED MODULE WORDS ...` before a module is run. As on a real machine a function gives
the same number for the same argument each time; which results move, up or down by one unit in the last place, is drawn
from the argument's bits and the seed. What every library gives exactly (0, 1 where it is the nearest, infinity) stays.
"""

from __future__ import annotations

import math
import runpy
import sys
from typing import Any

import numpy as np

NAMES = ("exp", "expm1", "log", "log1p")
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Perturbed:
    """A ufunc of one argument whose results are moved by at most one unit in the last place.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One of `NAMES`.
    seed : int
        Which machine.
    """

    def __init__(self, ufunc: np.ufunc, seed: int) -> None:
        self.ufunc = ufunc
        self.key = np.uint64(((NAMES.index(ufunc.__name__) + 1) * 0xD1342543DE82EF95 + seed) % 2**64)
        self.__name__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def __call__(self, x: Any, *given: Any, **named: Any) -> Any:
        argument = np.array(x)  # a copy: the result may be written over it
        result = self.ufunc(x, *given, **named)
        if argument.dtype.kind not in "fiub" or result.dtype.kind != "f" or argument.dtype != result.dtype:
            return result
        moved = np.where(self._turn(argument), np.nextafter(result, self._side(argument, result)), result)
        moved = moved.astype(result.dtype)
        where = named.get("where", True)
        if isinstance(result, np.ndarray):
            np.copyto(result, moved, where=where)
            return result
        return result.dtype.type(moved)

    def _bits(self, argument: np.ndarray) -> np.ndarray:
        bits = argument.astype(np.float64).ravel().view(np.uint64) ^ self.key  # arrays wrap around, scalars warn
        for shift in (30, 27, 31):
            bits = (bits ^ (bits >> np.uint64(shift))) * _MIX
        return (bits >> np.uint64(60)).reshape(argument.shape)

    def _turn(self, argument: np.ndarray) -> np.ndarray:
        """Two results of three are another machine's."""
        return self._bits(argument) % np.uint64(3) != 0

    def _side(self, argument: np.ndarray, result: np.ndarray) -> np.ndarray:
        """Towards which number a result moves: itself where every machine agrees."""
        up = self._bits(argument) % np.uint64(3) == 1
        exact = ~np.isfinite(result) | (result == 0.0) | (result == 1.0) | (result == -1.0) | (result == argument)
        return np.where(exact, result, np.where(up, np.inf, -np.inf)).astype(result.dtype)


def install(seed: int) -> None:
    """Replace the functions of NumPy and of `math` for this process.

    Parameters
    ----------
    seed : int
        Which machine; at least 0.
    """
    for name in NAMES:
        moved = Perturbed(getattr(np, name), seed)
        setattr(np, name, moved)
        setattr(math, name, _scalar(getattr(math, name), moved))


def _scalar(function: Any, moved: Perturbed) -> Any:
    """A function of `math`, with the errors it raises and the digits of the perturbed one."""

    def perturbed(x: Any, *base: Any) -> Any:
        result = function(x, *base)
        if base or (isinstance(x, int) and abs(x) > 2**53):
            return result
        argument = np.array(float(x))
        side = moved._side(argument, np.array(result))
        return math.nextafter(result, float(side)) if bool(moved._turn(argument)) else result

    perturbed.__name__ = function.__name__
    return perturbed


if __name__ == "__main__":
    install(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
