"""Clients and labels of `train` are words: those that look the same are one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shuffledp.errors import InvalidInput
from shuffledp.learning.data import DataOptions, load
from shuffledp.learning.inputs import Clients
from shuffledp.numerics.randomness import simulation_random

ONE = ["5", "5.0", "Zo\u00eb", "Zoe\u0308", "x ", "x"]


def asked(tmp_path, groups: list[str], labels: list[str], **more) -> DataOptions:
    rows = len(groups)
    pl.DataFrame({"who": groups, "age": np.arange(rows) % 7, "buys": labels}).write_csv(tmp_path / "t.csv")
    told = {"source": str(tmp_path / "t.csv"), "label": "buys", "features": "age:0:7", "groups": "who", "clients": None}
    return DataOptions(**told, **{"unit": "client", "epsilon0": "4", "holdout": 0.0, "classes": None} | more)


def test_two_spellings_of_a_client_are_one_client(tmp_path):
    """A client that is counted twice sends two messages and is promised what holds for one."""
    found = load(asked(tmp_path, ONE * 10, ["no", "yes"] * 30), simulation_random(1))
    assert found.clients == 3
    assert set(found.groups) == {"5", "Zo\u00eb", "x"}


@pytest.mark.parametrize("nobody", ["NA", "null", "\u200b"])
def test_rows_without_a_client_are_refused(tmp_path, nobody):
    with pytest.raises(InvalidInput, match=r"^who in row 3 is .*(nobody knows whose row|give every row an entry)"):
        load(asked(tmp_path, ["a", "b", nobody, "c"], ["no", "yes"] * 2), simulation_random(1))


@pytest.mark.parametrize(("classes", "names"), [(None, ("1", "true")), ("True,1.0", ("True", "1.0"))])
def test_labels_are_words(tmp_path, classes, names):
    labels = ["1", "1.0", "true", "TRUE"]
    found = load(asked(tmp_path, list("abcd"), labels, classes=classes), simulation_random(1))
    assert found.classes == names
    assert sorted(np.bincount(found.labels).tolist()) == [2, 2]
    with pytest.raises(InvalidInput, match="two or more different labels"):
        load(asked(tmp_path, list("abcd"), labels, classes="1,1.0"), simulation_random(1))


def test_clients_in_two_spellings_are_refused_by_fit():
    for names in (["5", "5.0"], ["Zo\u00eb", "Zoe\u0308"], ["a b", "a\u00a0b"]):
        with pytest.raises(InvalidInput, match=r"^the clients .* and .* are one word, written in two ways"):
            Clients.of(names, 2)
    assert Clients.of([5.0, 6.0], 2).count == Clients.of(["5", "6"], 2).count == 2
