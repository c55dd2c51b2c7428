"""A reproduction as files: CSV, PNG, SVG and the caption, each whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from shuffledp.errors import InvalidInput
from shuffledp.reproduce.base import STYLE, Outcome, Picture, Reproduction, Table
from shuffledp.whole_files import replaced, way_out

RESOLUTION = 160  # dots per inch of the PNG


def write(reproduction: Reproduction, outcome: Outcome, folder: Path) -> list[Path]:
    """Write all files of one reproduction.

    Parameters
    ----------
    reproduction : Reproduction
        Names the files.
    outcome : Outcome
        What was found.
    folder : Path
        Where to; made if it does not exist.

    Returns
    -------
    list of Path
        The files, tables first.

    Raises
    ------
    InvalidInput
        If the folder cannot be written to.
    """
    contents = {f"{name}.csv": _csv(table) for name, table in outcome.tables.items()}
    for name, picture in outcome.pictures.items():
        contents |= {f"{name}.{kind}": data for kind, data in _drawn(picture, reproduction.title).items()}
    contents[f"{reproduction.name}.md"] = _caption(reproduction, outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_replace(folder / name, data) for name, data in contents.items()]
    except OSError as error:
        advice = way_out(error, "name another folder with --out")
        raise InvalidInput(f"cannot write to {folder} ({error.strerror}); {advice}") from None


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([[repr(cell) if isinstance(cell, float) else cell for cell in row] for row in table.rows])
    return text.getvalue().encode()


def _drawn(picture: Picture, title: str) -> dict[str, bytes]:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    files: dict[str, bytes] = {}
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=picture.size, layout="constrained")
        FigureCanvasAgg(figure)
        picture.draw(figure)
        for kind in ("png", "svg"):
            data = io.BytesIO()
            # no date and no version inside: same numbers, same bytes
            own = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            figure.savefig(data, format=kind, dpi=RESOLUTION, metadata={**own, "Title": picture.title or title})
            files[kind] = data.getvalue()
    return files


def _caption(reproduction: Reproduction, outcome: Outcome) -> bytes:
    files = ", ".join(f"`{name}.csv`" for name in outcome.tables)
    lines = [
        f"# {reproduction.title} ({reproduction.source})",
        "",
        *(part for name, shown in outcome.pictures.items() for part in (_image(name, shown, reproduction.title), "")),
        *(part for paragraph in outcome.caption for part in (paragraph, "")),
        f"Data: {files}. Made by `shuffledp reproduce {reproduction.name}`.",
        "",
    ]
    return "\n".join(lines).encode()


def _image(name: str, picture: Picture, title: str) -> str:
    return f"![{picture.title or title}]({name}.svg)"


def _replace(target: Path, data: bytes) -> Path:
    with replaced(target, str(target)) as stream:
        stream.write(data)
    return target
