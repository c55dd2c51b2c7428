"""Functions of `scipy.special`, which is loaded at the first call of one of them.

Loading it takes as long as a fifth of an answer of `shuffledp amplify`, and much of the library, a participant's client
among it, never calls one. Each is SciPy's function of the same name: arguments and results are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _scipys(name: str) -> Callable[..., Any]:
    return getattr(import_module("scipy.special"), name)


def _late(name: str) -> Callable[..., Any]:
    """Return SciPy's special function of that name, looked up when it is called."""

    def call(*arguments: Any) -> Any:
        return _scipys(name)(*arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`scipy.special.{name}`."
    return call


bdtr = _late("bdtr")
bdtrc = _late("bdtrc")
betainc = _late("betainc")
betainccinv = _late("betainccinv")
betaincinv = _late("betaincinv")
betaln = _late("betaln")
erfcx = _late("erfcx")
gammaln = _late("gammaln")
lambertw = _late("lambertw")
log_ndtr = _late("log_ndtr")
ndtr = _late("ndtr")
ndtri = _late("ndtri")
ndtri_exp = _late("ndtri_exp")
roots_legendre = _late("roots_legendre")
