"""A question says what its answer is; whoever renders it knows no question."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.numerics.randomness import simulation_random
from shuffledp.questions.question import Picture, Question, Shape
from shuffledp.report import answer
from shuffledp.report.answer import cells, title_of, view_of
from shuffledp.report.page import estimate_parts
from shuffledp.report.to_json import release_to_json

RENDERERS = ("answer", "page", "terminal", "to_json")
QUESTIONS: tuple[Question, ...] = (
    sdp.Mean(0, 10),
    sdp.Variance(0, 10),
    sdp.Histogram(0, 10, bins=5),
    sdp.Quantiles(0, 10, at=[0.25, 0.5], bins=8),
    sdp.Frequency(["0", "1", "2", "3", "4"]),
    sdp.FrequentItems(["0", "1", "2", "3", "4", "nobody"]),
)


def released(question: Question) -> sdp.Release:
    numbers = np.arange(2000) % 5
    records = numbers.astype(str) if question.reads == "texts" else numbers.astype(float)
    return sdp.release(
        question, {"x": records}, value="x", budgets=2.0, seen="reports", delta=1e-6, random=simulation_random(1)
    )


@pytest.mark.parametrize("name", RENDERERS)
def test_no_renderer_names_a_question(name):
    tree = ast.parse((Path(answer.__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not words & {question.name for question in (*QUESTIONS, sdp.VectorMean(2, 1.0))}
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {module for module in imported if module and module.startswith("shuffledp.questions")} - {
        "shuffledp.questions.question"
    }


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_view_holds_the_numbers_of_the_release(question):
    release = released(question)
    view = view_of(release)
    low, high = release.confidence_interval(0.95)
    for held, known in ((view.numbers.value, release.estimate), (view.numbers.low, low), (view.numbers.high, high)):
        assert held.tolist() == np.atleast_1d(known).tolist()
    assert len(view.labels) == view.size > 0
    assert [entry.value for entry in view.entries()] == view.numbers.value.tolist()
    told = release_to_json(release)
    listed = told["estimates"] if view.shape.label else [told]
    assert [entry[view.shape.key] for entry in listed] == view.numbers.value.tolist()
    assert view_of(release) is view


def test_a_question_of_somebody_else_is_rendered_without_a_line_in_report():
    class Height(sdp.Mean):
        name = "height"
        shape = Shape("Height", "How tall is {0}?", "height", "number", picture=Picture("point", (("estimate", "it"),)))

    release = released(Height(0, 10))
    told = release_to_json(release)
    assert told["question"] == "height"
    assert "sum" not in told
    assert title_of(release, "x") == "How tall is x?"
    parts = estimate_parts(answer.Answer("?", release.guarantee, release))
    assert parts is not None
    assert parts["number"]["value"] == cells(view_of(release), view_of(release).entries()[0])[0]
    assert parts["legend"] == [("estimate", "it")]
