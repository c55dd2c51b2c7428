"""The commands `train` and `predict` and their options; the bodies are in `learning.train` and `learning.train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.shell import estimate_options as e
from shuffledp.shell import options as o
from shuffledp.shell.options import reads_table

DATA = "Data"
MODEL = "Model"


def register(app: typer.Typer) -> None:
    """Add the commands ``train`` and ``predict`` to the command line."""
    app.command()(train)
    app.command()(predict)


@reads_table
def train(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="CSV, TSV or Parquet file with one row per example; or a folder with MNIST's four idx files; or "
            "mnist-sample, the 2,500 digits that come with the package.",
        ),
    ],
    unit: Annotated[
        str,
        typer.Option(
            "--unit", metavar="WHAT", help="What is protected: client (all rows of one client) or example (one row)."
        ),
    ],
    seen: Annotated[
        str,
        typer.Option(
            "--seen",
            metavar="WHAT",
            help="What the server sees: users (every message, clients in random order, the model moving after each), "
            "reports or levels (all messages of a round, shuffled), or sum (only their sum).",
        ),
    ],
    epsilon0: Annotated[
        str,
        typer.Option(
            "--epsilon0",
            metavar="COL_OR_NUMBER",
            help="Local budget of one message: a number, or the column with each client's own.",
        ),
    ],
    delta: o.Delta,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COL", help="The column with the labels.", rich_help_panel=DATA)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            metavar="LIST",
            help="Table: columns of numbers, as NAME or NAME:LOW:HIGH, which is clipped to the range and brought to "
            "0 to 1. Pictures: edges (default), coarse-edges (a quarter of the side to a cell, length 1), scattering, "
            "strokes (128 scattering features of handwriting), cosine or pixels.",
            rich_help_panel=DATA,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A,B,C",
            help="The labels there are; without, they are read off the table and so become public.",
            rich_help_panel=DATA,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COL",
            help="The column that says whose row it is; without, everybody has one.",
            rich_help_panel=DATA,
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients",
            parser=o.typed_whole,
            metavar="K",
            help="Spread the rows over K clients at random, where the data have none.",
            rich_help_panel=DATA,
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            "--holdout",
            parser=o.number,
            metavar="SHARE",
            help="Table: share kept out of training, to measure accuracy (default 0.2).",
            rich_help_panel=DATA,
        ),
    ] = None,
    missing_as: Annotated[
        float | None,
        typer.Option(
            "--missing-as",
            parser=o.number,
            metavar="VALUE",
            help="Table: the number that a missing entry of a feature counts as; predict does the same.",
            rich_help_panel=DATA,
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="What a message is: its gradient with gaussian or laplace noise, or sketch, one randomized bit of it "
            "(unit client, seen reports or levels).",
            rich_help_panel=MODEL,
        ),
    ] = "gaussian",
    delta0: Annotated[
        float | None,
        typer.Option(
            "--delta0",
            parser=o.number,
            metavar="D",
            help="Gaussian: approximate part of a message's budget (default: delta for examples and sums, else delta "
            "over the number of clients).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            parser=o.typed_whole,
            metavar="T",
            help="Messages of every client; the guarantee covers all (default 20).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    clip: Annotated[
        float | None,
        typer.Option(
            "--clip",
            parser=o.number,
            metavar="C",
            help="Largest norm of a gradient (default: 0.2 for edges, else 1).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    step: Annotated[
        float | None,
        typer.Option(
            "--step",
            parser=o.number,
            metavar="S",
            help="Length of a step (default: 2 for edges, else 0.5).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    momentum: Annotated[
        float,
        typer.Option(
            "--momentum",
            parser=o.number,
            metavar="SHARE",
            help="Share of the last direction that is kept.",
            rich_help_panel=MODEL,
        ),
    ] = 0.0,
    averaging: Annotated[
        float,
        typer.Option(
            "--averaging",
            parser=o.number,
            metavar="SHARE",
            help="The model is the average of those of this last share of the rounds; 0 for the last one.",
            rich_help_panel=MODEL,
        ),
    ] = 0.0,
    hidden: Annotated[
        str | None,
        typer.Option(
            "--hidden",
            metavar="WIDTHS",
            help="Hidden layers, such as 128 or 128,64; none by default: softmax regression.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    min_messages: Annotated[
        int,
        typer.Option(
            "--min-messages",
            parser=o.typed_whole,
            metavar="M",
            help="A round with fewer messages is not released.",
            rich_help_panel=MODEL,
        ),
    ] = 1,
    max_epsilon: Annotated[
        float | None,
        typer.Option(
            "--max-epsilon",
            parser=o.number,
            metavar="E",
            help="Stop before the guarantee would exceed it.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            "--target-epsilon",
            parser=o.number,
            metavar="E",
            help="Central epsilon that all rounds together may cost: finds the largest factor on all budgets, or, with "
            "--find rounds, the largest number of rounds.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            "--find",
            metavar="WHAT",
            help="What --target-epsilon finds: scale (default; --epsilon0 then states budgets in proportion) or "
            "rounds.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="SOURCE",
            help="Rows of nobody who is protected, in the form of SOURCE: accuracy after each round is shown on them "
            "(for pictures, on the training part of a folder or of mnist-sample).",
            rich_help_panel=DATA,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            parser=o.typed_whole,
            metavar="R",
            help="End after R rounds without a better accuracy on --public, and keep the best model; the guarantee is "
            "that of all rounds asked for.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    model_out: Annotated[
        Path | None,
        typer.Option(
            "--model-out",
            parser=o.file_path,
            metavar="FILE.npz",
            help="Write the model: layers, labels, features and guarantee.",
            rich_help_panel=o.RESULT,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            parser=o.file_path,
            metavar="FILE",
            help="Keep model and count of rounds in this file, so that a run that was cut short can go on.",
            rich_help_panel=o.RESULT,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the --checkpoint file; a larger --rounds makes a finished run longer.",
            rich_help_panel=o.RESULT,
        ),
    ] = False,
    ledger: e.LedgerFile = None,
    population: e.PopulationName = "everybody",
    fixed_in_advance: e.FixedInAdvance = None,
    simulation_seed: o.SimulationSeed = None,
    json: o.Json = False,
    report: o.Report = None,
    *,
    table: Any,
) -> None:
    """Train a classifier on clipped and noised messages of clients, and tell what may be claimed of it.

    Example (on the digits that come with the package):

    shuffledp train mnist-sample --unit example --seen users --clients 20 --epsilon0 4 --delta 1e-5
    """
    from shuffledp.learning.data import DataOptions
    from shuffledp.learning.train import Files, TrainingOptions, run_train
    from shuffledp.shell.output import Entered

    options = DataOptions(source, label, features, classes, groups, clients, holdout, epsilon0, unit, missing_as, table)
    way = TrainingOptions(
        unit, seen, delta, delta0, mechanism, clip, rounds, hidden, step, momentum, averaging, min_messages,
        max_epsilon, target_epsilon, find, patience,
    )  # fmt: skip
    entered = Entered(ledger, population, fixed_in_advance)
    run_train(options, way, Files(model_out, report, json, simulation_seed, checkpoint, resume, public), entered)


@reads_table
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL.npz", parser=o.file_path, help="What train wrote.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="CSV, TSV or Parquet file with the columns that the model was trained on; or a folder with MNIST's "
            "idx files, whose test part is predicted; or mnist-sample.",
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COL", help="Table: the column with the true labels, to measure accuracy."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", parser=o.file_path, metavar="FILE.csv", help="Write each row's number and predicted label."
        ),
    ] = None,
    json: o.Json = False,
    *,
    table: Any,
) -> None:
    """Predict labels of new rows with a model that train wrote.

    The rows are not protected: what is printed is a function of them.

    Example:

    shuffledp predict model.npz mnist-sample
    """
    from shuffledp.learning.train import run_predict

    run_predict(model, source, label, out, table, json=json)
