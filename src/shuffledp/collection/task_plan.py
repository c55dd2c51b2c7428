"""`task plan`: what a survey's answers will be worth, before a key is made."""

from __future__ import annotations

from pathlib import Path

from shuffledp.collection.plan_view import plan_object, plan_picture, print_collection_plan
from shuffledp.collection.planner import plan_collection
from shuffledp.collection.survey import LONGEST_SURVEY, request_of_survey
from shuffledp.errors import InvalidInput
from shuffledp.report.to_json import dumps
from shuffledp.shell.output import console, reserved, working
from shuffledp.whole_files import read_bytes


def run_plan(
    survey: Path,
    people: int | None,
    promise: float | None,
    wanted: float | None,
    shufflers: int,
    figure: Path | None,
    *,
    as_json: bool,
) -> None:
    """Plan a survey, and print the plan.

    Parameters
    ----------
    survey : Path
        A survey.toml; only its questions are needed.
    people, promise, wanted, shufflers
        As for `shuffledp.collection.survey.request_of_survey`.
    figure : Path or None
        Where the picture goes, an SVG file.
    as_json : bool
        Whether to print one JSON object and nothing else.
    """
    if figure is not None and figure.suffix.lower() != ".svg":
        raise InvalidInput(f"--figure {figure} must end in .svg; name a file such as plan.svg")
    data = read_bytes(survey, "the survey", LONGEST_SURVEY)
    request = request_of_survey(data, people=people, promise=promise, wanted=wanted, shufflers=shufflers)
    with reserved(figure, "--figure") as stream, working("Planning"):
        plan = plan_collection(request)
        if stream is not None:
            stream.write(plan_picture(plan))
    if as_json:
        print(dumps(plan_object(plan)))
        return
    print_collection_plan(console(), plan)
    if figure is not None:
        console().print(f"Written: {figure.resolve()}", soft_wrap=True, highlight=False, markup=False)
