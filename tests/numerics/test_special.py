from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.special

from shuffledp.numerics import functions

NAMES = sorted(name for name in vars(functions) if callable(getattr(scipy.special, name, None)))
ARGUMENTS = {
    **{key: [(0.3,), (np.array([0.1, 2.5]),)] for key in ("erfcx", "gammaln", "lambertw", "log_ndtr", "ndtr")},
    **{key: [(0.3,), (np.array([0.1, 0.9]),)] for key in ("ndtri", "ndtri_exp")},
    **{key: [(3, 10, 0.4)] for key in ("bdtr", "bdtrc")},
    **{key: [(2.0, 3.0, np.array([0.1, 0.9]))] for key in ("betainc", "betaincinv", "betainccinv")},
    "betaln": [(2.0, 3.0)],
    "roots_legendre": [(5,)],
}


@pytest.mark.parametrize("name", NAMES)
def test_each_is_scipys(name):
    for arguments in ARGUMENTS[name]:
        assert np.array_equal(getattr(functions, name)(*arguments), getattr(scipy.special, name)(*arguments), True)


def test_every_name_is_tried():
    assert set(ARGUMENTS) == set(NAMES)


CODE = "import sys, shuffledp.collection.client{0}\nprint('scipy' in sys.modules)"


@pytest.mark.costly("\\nfrom shuffledp.numerics.functions import ndtr\\nndtr(1.0)-True")
@pytest.mark.parametrize(
    ("also", "loaded"), [("", "False"), ("\nfrom shuffledp.numerics.functions import ndtr\nndtr(1.0)", "True")]
)
def test_scipy_is_loaded_by_the_first_call(also, loaded):
    """What a participant's client imports calls none of them."""
    done = subprocess.run([sys.executable, "-c", CODE.format(also)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == loaded
