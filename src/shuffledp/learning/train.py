"""The bodies of `train` and `predict`: from a table or pictures to a model file, and from that to labels."""

from __future__ import annotations

import contextlib
import csv
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from shuffledp import __version__
from shuffledp.errors import InvalidInput, shown
from shuffledp.learning import (
    ShuffledSGDClassifier,
    TrainedModel,
    load_model,
    print_progress,
    read_digits,
    sample_folder,
)
from shuffledp.learning.data import SAMPLE, DataOptions, Records, load, public_rows
from shuffledp.learning.features import Scaled
from shuffledp.learning.network import MODEL_FORMAT, write_model
from shuffledp.learning.page import Training, print_training, training_page, training_to_json
from shuffledp.numerics.randomness import choose_random
from shuffledp.report import wording
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import COMMAND_LINE, Entered, console, outputs, reserved, will_change, working
from shuffledp.tables import TableOptions, read_columns

# `train`: from a table or pictures to a model file, its accuracy and its guarantee.

EDGES_CLIP, EDGES_STEP = 0.2, 2.0
"""Default clipping length and step for oriented gradients, whose length is 3."""


PLAIN_CLIP, PLAIN_STEP = 1.0, 0.5


DEFAULT_ROUNDS = 20


LITTLE, NOTHING = 5.0, 10.0
"""Central epsilons above which a guarantee means little, or next to nothing: e^5 = 148, e^10 = 22,026."""


BAR_LEVELS = 32
"""Largest number of budget levels of clients with which the spending of all is computed after every round."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of ``shuffledp train``, as typed, that set the training; `ShuffledSGDClassifier` defines each.

    Each field has the name of its option, and None means that the option was left out.
    """

    unit: str
    seen: str
    delta: float
    delta0: float | None
    mechanism: str
    clip: float | None
    rounds: int | None
    hidden: str | None
    step: float | None
    momentum: float
    averaging: float
    min_messages: int
    max_epsilon: float | None
    target_epsilon: float | None
    find: str | None
    patience: int | None

    def rounds_asked(self) -> int | None:
        """Return the number of rounds, 20 by default; None if --find rounds is to choose it for --target-epsilon."""
        count = DEFAULT_ROUNDS if self.rounds is None else self.rounds
        if self.find is None:
            return count
        if self.find not in ("scale", "rounds"):
            raise InvalidInput(f"--find must be scale (a factor on all budgets) or rounds; got {shown(self.find)}")
        if self.target_epsilon is None:
            raise InvalidInput(f"--find {self.find} needs --target-epsilon E, what all rounds together may cost")
        if self.find == "rounds" and self.rounds is not None:
            raise InvalidInput("--find rounds finds the number of rounds: leave --rounds out, or find the scale")
        return None if self.find == "rounds" else count

    def layers(self) -> tuple[int, ...]:
        """Return the widths of the hidden layers given by --hidden; empty for softmax regression."""
        text = (self.hidden or "").strip()
        try:
            widths = tuple(int(part) for part in text.split(",")) if text else ()
        except ValueError:
            widths = (0,)
        if any(width < 1 for width in widths):
            raise InvalidInput(f"--hidden must be widths of layers such as 128 or 128,64; got {shown(self.hidden)}")
        return widths


@dataclass(frozen=True)
class Files:
    """Options of ``shuffledp train``, as typed, that name files or say how results are printed.

    Each field has the name of its option, and None means that the option was left out.
    """

    model_out: Path | None
    report: Path | None
    json: bool
    simulation_seed: int | None
    checkpoint: Path | None = None
    resume: bool = False
    public: str | None = None


def run_train(options: DataOptions, way: TrainingOptions, files: Files, entered: Entered) -> None:
    """Train a model, write its files whole or not at all, and print accuracy and guarantee.

    Parameters
    ----------
    options : DataOptions
        Options that name the data.
    way : Way
        Options that set the training.
    files : Files
        Options that name the result files.
    entered : Entered
        The ledger's options.

    Raises
    ------
    InvalidInput
        On any bad option or data; no file is written then.
    """
    if files.model_out is not None and files.model_out.suffix != ".npz":
        raise InvalidInput(f"--model-out must end in .npz; got {files.model_out}")
    if files.resume and files.checkpoint is None:
        raise InvalidInput("--resume needs --checkpoint FILE, the file that the run before wrote")
    if entered.ledger is not None:
        _check_covered(options)
    random = choose_random(files.simulation_seed)
    if files.resume and (options.spreads or options.holds_out):
        raise InvalidInput(
            "--resume needs the same clients and the same test part as the run before, and both are drawn at random: "
            "name clients with --groups COL, and hold nothing out with --holdout 0"
        )
    if way.patience is not None and files.public is None:
        raise InvalidInput(
            "--patience needs --public TABLE_OR_FOLDER: when training ends tells of the rows that decide it, so these "
            "must be public"
        )
    if files.checkpoint is not None:
        will_change(files.checkpoint, "keeps the run: go on with --resume")
    with outputs({"--model-out": files.model_out, "--report": files.report}) as out:
        records = load(options, random)
        public = None if files.public is None else public_rows(options, records, files.public)
        shown_on = records.test if public is None else public
        edges = records.about["kind"] == "edges"
        bar = sys.stderr.isatty() and (way.unit == "example" or np.unique(records.budgets).size <= BAR_LEVELS)
        model = ShuffledSGDClassifier(
            unit=way.unit, seen=way.seen, epsilon0=records.budgets, delta=way.delta, delta0=way.delta0,
            clip=(EDGES_CLIP if edges else PLAIN_CLIP) if way.clip is None else way.clip, rounds=way.rounds_asked(),
            hidden=way.layers(), mechanism=way.mechanism,
            step=(EDGES_STEP if edges else PLAIN_STEP) if way.step is None else way.step, momentum=way.momentum,
            averaging=way.averaging, min_messages=way.min_messages, classes=len(records.classes),
            features=records.features, max_epsilon=way.max_epsilon, target_epsilon=way.target_epsilon,
            patience=way.patience, progress=print_progress if bar else None, checkpoint=files.checkpoint, random=random,
        )  # fmt: skip
        with contextlib.nullcontext() if bar else working("Training, counting what it costs"):
            began = time.process_time()
            model.fit(
                records.rows, records.labels, groups=records.groups, validation=shown_on, resume=files.resume,
                **entered.arguments(),
            )  # fmt: skip
            seconds = time.process_time() - began
        if bar and model.history_ and model.history_[-1].round < model.history_[-1].rounds:
            print(file=sys.stderr)  # the bar ended early: leave its line
        training = _training_summary(options.source, records, model, seconds)
        made = {"command": COMMAND_LINE.get(), "version": __version__}
        out.write("--model-out", lambda file: _write_model(file, records, model, training))
        out.write("--report", lambda page: page.write(training_page(training, **made)))
        out.show(lambda: _show(training, out.written, as_json=files.json))


def weak(epsilon: float) -> tuple[str, ...]:
    """Return a tuple with a warning if epsilon is so large that the guarantee says little; else an empty tuple.

    Parameters
    ----------
    epsilon : float
        Certified central epsilon in nats.
    """
    if epsilon <= LITTLE:
        return ()
    above, what = (NOTHING, "next to nothing") if epsilon > NOTHING else (LITTLE, "little")
    return (
        f"an epsilon above {above:g} says {what}: take fewer rounds, smaller budgets or more clients, or let "
        "--target-epsilon find budgets",
    )


def _check_covered(options: DataOptions) -> None:
    """Refuse what would tell of records outside the training that the ledger enters."""
    if options.holds_out:
        raise InvalidInput(
            "--ledger enters the training, and the accuracy on rows held out of the same table would be a release of "
            "its own; say --holdout 0"
        )
    if options.is_table and options.classes is None:
        raise InvalidInput(
            "with --ledger, name the labels with --classes A,B,C: reading them off the table would be a release that "
            "no ledger enters"
        )


def _training_summary(source: str, records: Records, model: ShuffledSGDClassifier, seconds: float) -> Training:
    """Collect what may be told of the run."""
    accuracy, majority = None, None
    if records.test is not None:
        accuracy = model.score(*records.test)
        majority = float(np.bincount(records.test[1]).max() / records.test[1].size)
    return Training(
        source=source,
        rows=records.labels.size,
        clients=records.clients,
        test_rows=0 if records.test is None else records.test[1].size,
        tested_on=records.tested_on,
        accuracy=accuracy,
        majority=majority,
        seconds=seconds,
        warnings=records.warnings + weak(model.guarantee_.epsilon.upper),
        classes=records.classes,
        features=records.features.origin,
        widths=model.network_.widths,
        settings={
            "mechanism": model.mechanism,
            "clip": float(model.clip),
            "step": float(model.step),
            "momentum": float(model.momentum),
            "averaging": float(model.averaging),
            "rounds": model.history_[-1].rounds if model.history_ else int(model.accountant_.rounds),
        },
        guarantee=model.guarantee_,
        notes=(*model.guarantee_.notes, *records.notes),
        stopped=model.stopped_,
        history=tuple(model.history_),
    )


def _write_model(file: IO[str], records: Records, model: ShuffledSGDClassifier, training: Training) -> None:
    """Write layers, labels, features and guarantee; `load_model` reads it."""
    about = training_to_json(training) | {"features_of_a_row": records.about, "format": MODEL_FORMAT}
    stream = cast(TextIO, file).buffer
    write_model(stream, model.network_, model.weights_, records.classes, dumps(about))


def _show(training: Training, written: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        print(dumps(training_to_json(training) | {"written": [str(path.resolve()) for path in written]}))
        return
    terminal = console()
    print_training(terminal, training)
    for path in written:
        terminal.print(f"Written: {path.resolve()}", soft_wrap=True, highlight=False)


# `predict`: labels of new rows by a model file.


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as the model was trained on, and their labels where they are known."""

    rows: NDArray[np.generic]
    labels: list[str] | None


def run_predict(
    model_file: Path, source: str, label: str | None, out: Path | None, table: TableOptions, *, json: bool
) -> None:
    """Predict labels of new rows, write them to a file whole or not at all, and print the counts of the labels.

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
        Format options of a table.
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
        predicted = model.predict(given.rows)
        if file is not None:
            writer = csv.writer(file)
            writer.writerow(("row", "predicted"))
            writer.writerows(enumerate(predicted.tolist(), start=1))
    accuracy = majority = None
    if given.labels is not None:
        true_labels = np.array(given.labels)
        accuracy = float(np.mean(true_labels == predicted))
        majority = float(np.unique(true_labels, return_counts=True)[1].max() / true_labels.size)
    counts = {name: int((predicted == name).sum()) for name in model.classes}
    if json:
        fields = {"question": "prediction", "model": str(model_file), "source": source, "rows": int(predicted.size)}
        fields |= {"counts": counts, "accuracy": accuracy, "majority_share": majority}
        guarantee = {"epsilon": model.epsilon, "delta": model.delta}
        print(dumps(fields | {"trained_with": guarantee, "written": [] if out is None else [str(out.resolve())]}))
        return
    terminal = console()
    lines = [f"Predicted {wording.counted(int(predicted.size), 'row')}:"]
    lines += [f"  {name}: {wording.count(count)}" for name, count in counts.items()]
    if accuracy is not None and majority is not None:
        lines.append(
            f"Accuracy {100 * accuracy:.1f} %; always saying the most frequent class gets {100 * majority:.1f} %."
        )
    lines.append(_trained_with(model))
    for line in lines + ([] if out is None else [f"Written: {out.resolve()}"]):
        terminal.print(line, soft_wrap=True, highlight=False, markup=False)


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
