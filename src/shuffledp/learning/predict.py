"""`predict`: labels of new rows by a model file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InvalidInput
from shuffledp.learning import TrainedModel, load_model, read_digits, sample_folder
from shuffledp.learning.data import SAMPLE
from shuffledp.learning.row_features import Scaled
from shuffledp.report import wording
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import console, reserved
from shuffledp.tables import TableOptions, read_columns


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as the model was trained on, and their labels where they are known."""

    rows: NDArray[np.generic]
    labels: list[str] | None


def run_predict(
    model_file: Path, source: str, label: str | None, out: Path | None, table: TableOptions, *, json: bool
) -> None:
    """Predict, write the file whole or not at all, and tell how many rows got which label.

    Parameters
    ----------
    model_file : Path
        What ``train --model-out`` wrote.
    source : str
        Table, folder of pictures, or the name of the bundled digits.
    label : str or None
        Column with the true labels.
    out : Path or None
        Where predictions go, one line a row.
    table : TableOptions
        How a table is written.
    json : bool
        Print one JSON object.

    Raises
    ------
    InvalidInput
        If a file is missing or damaged, or the source is not of the kind that the model was trained on.
    """
    with reserved(out, "--out") as file:
        model = load_model(model_file)
        given = _read(model, source, label, table)
        found = model.predict(given.rows)
        if file is not None:
            writer = csv.writer(file)
            writer.writerow(("row", "predicted"))
            writer.writerows(enumerate(found.tolist(), start=1))
    accuracy = majority = None
    if given.labels is not None:
        known = np.array(given.labels)
        accuracy = float(np.mean(known == found))
        majority = float(np.unique(known, return_counts=True)[1].max() / known.size)
    counts = {name: int((found == name).sum()) for name in model.classes}
    if json:
        told = {"question": "prediction", "model": str(model_file), "source": source, "rows": int(found.size)}
        told |= {"counts": counts, "accuracy": accuracy, "majority_share": majority}
        guarantee = {"epsilon": model.epsilon, "delta": model.delta}
        print(dumps(told | {"trained_with": guarantee, "written": [] if out is None else [str(out.resolve())]}))
        return
    shown = console()
    lines = [f"Predicted {wording.counted(int(found.size), 'row')}:"]
    lines += [f"  {name}: {wording.count(count)}" for name, count in counts.items()]
    if accuracy is not None and majority is not None:
        lines.append(
            f"Accuracy {100 * accuracy:.1f} %; always saying the most frequent class gets {100 * majority:.1f} %."
        )
    lines.append(_trained_with(model))
    for line in lines + ([] if out is None else [f"Written: {out.resolve()}"]):
        shown.print(line, soft_wrap=True, highlight=False, markup=False)


def _trained_with(model: TrainedModel) -> str:
    if model.about["private"] is not True:
        return "The model was trained as a simulation: nothing protects the people whose records it learned from."
    return (
        f"The model's training is ({wording.up(model.epsilon)}, {wording.probability(model.delta)})-differentially "
        "private for the people whose records it learned from; the rows predicted here are not protected."
    )


def _read(model: TrainedModel, source: str, label: str | None, table: TableOptions) -> _Rows:
    path = Path(source)
    pictures = path.is_dir() or (source == SAMPLE and not path.exists())
    columns = model.columns
    if pictures and columns is not None:
        raise InvalidInput(f"this model was trained on the columns {', '.join(columns)} of a table; {source} has none")
    if not pictures and columns is None:
        raise InvalidInput(f"this model was trained on pictures; give a folder of idx files instead of {source}")
    if columns is None:
        if label is not None:
            raise InvalidInput("--label belongs to tables; a folder of idx files has its own labels")
        table.refuse_for_text("pictures have no columns", ("decimal", "thousands", "missing_values"))
        digits = read_digits(path if path.is_dir() else sample_folder(), "test")
        return _Rows(digits.images, [str(each) for each in digits.labels.tolist()])
    features = model.features
    assert isinstance(features, Scaled)
    texts = [] if label is None else [label]
    read = read_columns(path, numbers=columns, texts=texts, gaps=columns, options=table)
    rows = features.rows(read.numbers)
    return _Rows(rows, None if label is None else [str(word) for word in read.texts[label].to_list()])
