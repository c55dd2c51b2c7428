"""What `train` learns from: a table with a column of labels, or pictures of digits in idx files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import VALUE, BadEntry, InvalidInput, choice, shown
from shuffledp.learning import assign_clients, read_digits, sample_folder
from shuffledp.learning.features import PICTURE_MAPS as PICTURES
from shuffledp.learning.features import Map, Scaled, picture_features
from shuffledp.numerics.floats import FloatArray
from shuffledp.numerics.randomness import Randomness
from shuffledp.records.sources import person_words, refuse_public
from shuffledp.tables import Table, TableOptions, canonical, canonical_texts, read_columns
from shuffledp.tables.options import AS_FOUND, twice

SAMPLE = "mnist-sample"
"""Name of the bundled digits, where no file or folder has this name."""
HOLDOUT = 0.2


@dataclass(frozen=True)
class DataOptions:
    """Options of ``shuffledp train``, as typed, that name the data: source, columns, clients and budgets.

    Each field has the name of its option, and None means that the option was left out.
    """

    source: str
    label: str | None
    features: str | None
    classes: str | None
    groups: str | None
    clients: int | None
    holdout: float | None
    epsilon0: str
    unit: str
    missing_as: float | None = None
    table: TableOptions = AS_FOUND

    @property
    def spreads(self) -> bool:
        """True if rows are assigned to clients at random, which the option --clients asks for."""
        return self.clients is not None

    @property
    def is_table(self) -> bool:
        """True if the source is a table, False if it is a folder of pictures or the bundled digits."""
        source = Path(self.source)
        return not (source.is_dir() or (self.source == SAMPLE and not source.exists()))

    @property
    def holds_out(self) -> bool:
        """True if part of a table is held out at random as test rows; pictures have a test part of their own."""
        return self.is_table and self.holdout != 0.0

    @property
    def budget(self) -> float | str:
        """The option --epsilon0: one budget for all clients in nats, or the name of the column with the budgets."""
        try:
            return float(self.epsilon0)
        except ValueError:
            return self.epsilon0


@dataclass(frozen=True, eq=False)
class Records:
    """Training rows, test rows and budgets, as read from the source of ``shuffledp train``.

    Parameters
    ----------
    rows, labels : ndarray, shapes (n, inputs) and (n,)
        Training rows and their labels; a label is a position in ``classes``.
    groups : ndarray, shape (n,), or None
        Client that owns each row; None if every row is a client of its own.
    budgets : float or ndarray
        Local budget of one message in nats: one for all, or one per client in ascending order of clients.
    test : (ndarray, ndarray) or None
        Test rows and their labels; None without a test part.
    tested_on : str
        Description of the test part, in words.
    classes : tuple of str
        Names of the labels.
    features : Map
        Fixed map from a row to the network's inputs.
    about : dict
        Description of the features for the model file, from which a program can compute them again.
    notes : tuple of str
        Assumptions of the guarantee that come from reading the data, one sentence each.
    warnings : tuple of str
        Warnings about settings that hurt accuracy, one sentence each; they depend on the options alone, never on
        records.
    """

    rows: NDArray[np.generic]
    labels: NDArray[np.int64]
    groups: NDArray[np.generic] | None
    budgets: float | FloatArray
    test: tuple[NDArray[np.generic], NDArray[np.int64]] | None
    tested_on: str
    classes: tuple[str, ...]
    features: Map
    about: dict[str, Any]
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self.labels.size if self.groups is None else int(np.unique(self.groups).size)


def load(options: DataOptions, random: Randomness) -> Records:
    """Read the training and test rows from the table or the folder of pictures that the options name.

    Parameters
    ----------
    options : DataOptions
        Options that name the data.
    random : Randomness
        Chooses the test part, and spreads rows over clients where that is asked for.

    Raises
    ------
    InvalidInput
        If the data are bad, or an option is missing or does not belong to this kind of data.
    """
    source = Path(options.source)
    pictures = not options.is_table
    if not pictures:
        next(
            Table.of(source, options.table).batches(rows=1)
        )  # a file that is missing or empty is told of before anything else
    if options.clients is not None and options.clients < 1:
        raise InvalidInput(f"--clients must be at least 1; got {options.clients}")
    if options.groups is not None and options.clients is not None:
        raise InvalidInput("--groups and --clients exclude each other: either clients are known, or rows are spread")
    if options.unit == "example" and options.groups is None and options.clients is None:
        raise InvalidInput(
            "--unit example needs clients that hold several rows: name their column with --groups COL, or spread the "
            "rows over K clients at random with --clients K"
        )
    if pictures:
        return _pictures(options, source if source.is_dir() else sample_folder(), random)
    return _table(options, source, random)


def _pictures(options: DataOptions, folder: Path, random: Randomness) -> Records:
    tables_only = {"--label": options.label, "--groups": options.groups, "--classes": options.classes}
    tables_only |= {"--missing-as": options.missing_as}
    options.table.refuse_for_text("pictures have no columns", ("decimal", "thousands", "missing_values"))
    wrong = [name for name, value in (tables_only | {"--holdout": options.holdout}).items() if value is not None]
    if wrong:
        raise InvalidInput(f"{wrong[0]} belongs to tables; a folder of idx files has its own labels and test part")
    budget = options.budget
    if not isinstance(budget, float):
        raise InvalidInput(
            f"--epsilon0 must be a number for pictures, which have no columns; got {shown(options.epsilon0)}"
        )
    train, test = (read_digits(folder, part) for part in ("train", "test"))
    if train.images.shape[1] != test.images.shape[1]:
        raise InvalidInput(f"{folder}: training and test pictures differ in size; check the files")
    kind = options.features or "edges"
    side = math.isqrt(train.images.shape[1])
    if choice(kind, "--features of pictures", PICTURES) != "pixels" and side * side != train.images.shape[1]:
        raise InvalidInput(f"--features {kind} needs square pictures; these have {train.images.shape[1]} points")
    classes = int(max(train.labels.max(), test.labels.max())) + 1
    return Records(
        train.images,
        train.labels.astype(np.int64),
        _spread(options.clients, train.labels.size, random),
        budget,
        (test.images, test.labels.astype(np.int64)),
        f"the folder's own test part, {test.labels.size:,} pictures, which take no part in training",
        tuple(str(label) for label in range(classes)),
        picture_features(kind, side),
        {"kind": kind, "side": side},
        ("the labels that exist are public", "the test part is public: its accuracy is shown"),
    )


def _table(options: DataOptions, source: Path, random: Randomness) -> Records:
    if options.label is None:
        raise InvalidInput("--label COL is needed: the column with the labels")
    if options.features is None:
        raise InvalidInput("--features COL,COL:LOW:HIGH,... is needed: the columns to learn from")
    scaled = _columns(options.features, options.missing_as)
    budget = options.budget
    own = [budget] if isinstance(budget, str) else list[str]()
    if own and options.clients is not None:
        raise InvalidInput("--clients spreads rows over clients at random, so a client has no budget column; name one")
    refuse_public(
        {"epsilon0": own, "groups": [options.groups] if options.groups else []},
        [options.label, *scaled.names],
    )
    texts = [options.label, *([] if options.groups is None else [options.groups])]
    columns = read_columns(source, numbers=[*scaled.names, *own], texts=texts, gaps=scaled.names, options=options.table)
    rows = scaled.rows(columns.numbers)
    words: list[str] = canonical_texts(columns.texts[options.label]).to_list()
    classes, notes = _classes(options.classes, words)
    place = {canonical(name): i for i, name in enumerate(classes)}
    unknown = next((row for row, word in enumerate(words) if word not in place), None)
    if unknown is not None:
        raise BadEntry(
            f"{options.label} in row {unknown + 1} is {VALUE}, not among --classes; name every class there",
            words[unknown],
        )
    labels = np.array([place[word] for word in words], dtype=np.int64)
    named = options.groups
    groups = None if named is None else np.array(person_words(columns.texts[named], named).to_list())
    test = _held_out(
        HOLDOUT if options.holdout is None else options.holdout,
        labels.size,
        groups,
        options.unit,
        random,
    )
    kept = ~test
    train_groups = _spread(options.clients, int(kept.sum()), random) if groups is None else groups[kept]
    budgets = _per_client(columns.numbers[own[0]][kept], train_groups) if own else float(budget)
    what = "clients" if groups is not None and options.unit == "client" else "rows"
    share = f"{int(test.sum()):,} rows ({what} drawn at random), which take no part in training"
    if test.any():
        notes.append("the guarantee does not cover the rows that were held out: their accuracy is shown as it is")
    return Records(
        rows[kept],
        labels[kept],
        train_groups,
        budgets,
        (rows[test], labels[test]) if test.any() else None,
        share if test.any() else "nothing: no row was held out",
        classes,
        scaled,
        _features_description(scaled),
        tuple(notes),
        _unscaled(scaled),
    )


def public_rows(options: DataOptions, records: Records, source: str) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return public rows and their labels, read from another source in the form of the training rows.

    The rows are not protected.

    Parameters
    ----------
    options : DataOptions
        Options that name the training data.
    records : Records
        Training data, as `load` returned them.
    source : str
        Table with the same columns; or, for pictures, a folder or mnist-sample, of which the training part is taken.

    Raises
    ------
    InvalidInput
        If they do not fit the training rows.
    """
    if not isinstance(records.features, Scaled):
        folder = sample_folder() if source == SAMPLE and not Path(source).exists() else Path(source)
        digits = read_digits(folder, "train")
        if digits.images.shape[1] != records.rows.shape[1]:
            raise InvalidInput(f"--public {shown(source)}: its pictures differ in size from those of {options.source}")
        if int(digits.labels.max()) >= len(records.classes):
            raise InvalidInput(f"--public {shown(source)}: it has labels that {options.source} has not")
        return digits.images, digits.labels.astype(np.int64)
    label = str(options.label)
    names = records.features.names
    columns = read_columns(Path(source), numbers=names, texts=[label], gaps=names, options=options.table)
    words: list[str] = canonical_texts(columns.texts[label]).to_list()
    place = {canonical(name): i for i, name in enumerate(records.classes)}
    unknown = next((word for word in words if word not in place), None)
    if unknown is not None:
        raise InvalidInput(
            f"--public {shown(source)}: {label} holds {shown(unknown)}, which is no label of the training rows"
        )
    rows = records.features.rows(columns.numbers)
    return rows, np.array([place[word] for word in words], dtype=np.int64)


def _columns(text: str, missing_as: float | None) -> Scaled:
    names: list[str] = []
    ends: list[tuple[float, float]] = []
    for part in (each.strip() for each in text.split(",")):
        pieces = part.rsplit(":", 2)
        try:
            low, high = (float(pieces[1]), float(pieces[2])) if len(pieces) == 3 else (-math.inf, math.inf)
        except ValueError:
            low, high = math.nan, math.nan
        bounded = len(pieces) < 3 or (math.isfinite(low) and math.isfinite(high))
        if not part or len(pieces) == 2 or not low < high or not bounded:
            raise InvalidInput(
                f"--features lists columns as NAME or NAME:LOW:HIGH with LOW below HIGH; got {shown(part)}"
            )
        names.append(pieces[0])
        ends.append((low, high))
    if len(set(names)) < len(names):
        raise InvalidInput(f"--features {text} names a column twice; take one out")
    low, high = np.array(ends).T
    if missing_as is not None and not math.isfinite(missing_as):
        raise InvalidInput(f"--missing-as must be a finite number, what a missing entry counts as; got {missing_as}")
    return Scaled(tuple(names), low, high, missing_as)


def _features_description(scaled: Scaled) -> dict[str, Any]:
    """Describe the features for the model file, see `shuffledp.learning.features.features_of`."""
    description = {
        "kind": "columns",
        "columns": list(scaled.names),
        "low": scaled.low.tolist(),
        "high": scaled.high.tolist(),
    }
    return description if scaled.missing_as is None else description | {"missing_as": scaled.missing_as}


def _unscaled(scaled: Scaled) -> tuple[str, ...]:
    """Warn of columns without a range: one of large numbers uses up the clipping, and the others are not learned."""
    bare = [name for name, low in zip(scaled.names, scaled.low.tolist(), strict=True) if not math.isfinite(low)]
    if not bare:
        return ()
    return (
        f"{', '.join(bare)}: no range was given, so the numbers enter as they are; unless they are about 0 to 1 "
        "already, clipping leaves little of the other columns: give a range that does not depend on the records, as "
        f"{bare[0]}:LOW:HIGH",
    )


def _classes(given: str | None, words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names of the labels, and a note if they were read off the data."""
    if given is None:
        names = tuple(sorted(set(words)))
        if len(names) < 2:
            raise InvalidInput("the labels are all the same: there is nothing to learn; check --label")
        return names, ["the labels that exist were read off the table, and are public (--classes states them)"]
    names = tuple(each.strip() for each in given.split(","))
    if len(names) < 2 or not all(names) or twice(names):
        raise InvalidInput(f"--classes must list two or more different labels, such as no,yes; got {shown(given)}")
    return names, []


def _held_out(
    share: float, n: int, groups: NDArray[np.generic] | None, unit: str, random: Randomness
) -> NDArray[np.bool_]:
    """Choose the test part at random: whole clients where clients are protected, else rows."""
    if not 0.0 <= share < 1.0:
        raise InvalidInput(f"--holdout must be from 0 to below 1; got {share:g}")
    if groups is not None and unit == "client":
        names, owner = np.unique(groups, return_inverse=True)
        return _chosen(share, names.size, random, "clients")[owner]
    return _chosen(share, n, random, "rows")


def _chosen(share: float, n: int, random: Randomness, what: str) -> NDArray[np.bool_]:
    count = round(share * n)
    if share > 0.0 and not 1 <= count < n:
        raise InvalidInput(f"--holdout {share:g} of {n} {what} leaves nothing to train or to test; change it, or say 0")
    return random.permutation(n) < count


def _spread(clients: int | None, rows: int, random: Randomness) -> NDArray[np.int64] | None:
    return None if clients is None else assign_clients(rows, clients, random)


def _per_client(budgets: FloatArray, groups: NDArray[np.generic] | None) -> FloatArray:
    """One budget per client, in ascending order; all rows of a client must agree."""
    if groups is None:
        return budgets
    names, first, owner = np.unique(groups, return_index=True, return_inverse=True)
    client_budgets = budgets[first]
    wrong = np.flatnonzero(budgets != client_budgets[owner])
    if wrong.size:
        who = names[owner[wrong[0]]]
        raise InvalidInput(
            f"client {who} has two budgets, {client_budgets[owner[wrong[0]]]:g} and {budgets[wrong[0]]:g}; a client "
            "sends messages with one budget: give all its rows the same"
        )
    return client_budgets
