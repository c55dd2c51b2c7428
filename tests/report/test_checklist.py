"""The checklist of NIST SP 800-226: filled from the setting, and open where the setting does not tell."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.cli.difference import difference_checklist
from shuffledp.cli.ledger import ledger_checklist
from shuffledp.learning.page import Training, training_checklist
from shuffledp.report.answer import Answer
from shuffledp.report.checklist import OPEN, QUESTIONS, checklist
from shuffledp.report.page import render
from shuffledp.report.wording import up


def filled(*answers: Answer, groups: bool = False) -> dict[str, str]:
    return {point.question: " ".join(point.answers) for point in checklist(answers, groups=groups)}


def planned(**situation) -> Answer:
    setting = sdp.Setting(sdp.Budgets((1.0,), (50,)), "any", seen="reports", neighboring="replace-one")
    known = sdp.certify(setting, delta=1e-6)
    return Answer("How private?", dataclasses.replace(known, setting=dataclasses.replace(setting, **situation)))


def test_rows_of_a_table_with_a_secure_draw(frequency_release):
    found = filled(Answer("How often?", frequency_release.guarantee, frequency_release))
    assert list(found) == list(QUESTIONS)
    assert "One row of the table." in found["Unit of privacy"]
    assert f"{OPEN}whether anybody owns several rows" in found["Unit of privacy"]
    assert "The number of people (600)" in found["Neighbouring relation"]
    assert "local budgets from 0.5 to 2" in found["Parameters"]
    assert "delta = 1e-5 for the worst budget level, certified" in found["Parameters"]
    assert "whoever ran it must be honest" in found["Trust: who must be honest"]
    assert "the shuffled reports, without their senders' budgets" in found["Who can see what"]
    assert "exact integer sampling" in found["Side channels"]
    assert "known seed" not in found["Side channels"]
    assert "This release alone is counted." in found["Composition and other releases"]


def test_people_who_own_several_rows():
    table = {"who": [*range(300), *range(300)], "vote": ["yes", "no"] * 300}
    ask = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-4, "person": "who", "rows_per_person": 2}
    found = sdp.release(sdp.Frequency(["yes", "no"]), table, **ask)
    told = filled(Answer("How often?", found.guarantee, found))
    assert told["Unit of privacy"] == "One person, with at most 2 rows."
    assert "neighbours differ in 2 records" in told["Neighbouring relation"]


def test_a_simulation_is_open(mean_release, frequency_release):
    answers = [Answer("Mean?", mean_release.guarantee, mean_release),
               Answer("How often?", frequency_release.guarantee, frequency_release)]  # fmt: skip
    found = filled(*answers)
    assert f"{OPEN}the noise came from a known seed" in found["Side channels"]
    assert "exact integer sampling" not in found["Side channels"]
    assert "(“Mean?”)" in found["Parameters"]
    assert "at most the sum" in found["Composition and other releases"]
    assert "at most the sum" not in filled(*answers, groups=True)["Composition and other releases"]
    assert "Nobody is in two groups" in filled(*answers, groups=True)["Composition and other releases"]


@pytest.mark.parametrize(
    ("situation", "question", "words"),
    [
        ({}, "Unit of privacy", "One user, with all of that user's reports."),
        ({}, "Trust: who must be honest", f"{OPEN}whether others collude"),
        ({}, "Trust: who must be honest", f"{OPEN}who runs the shuffler"),
        ({}, "Side channels", f"{OPEN}what draws the noise"),
        ({"group_size": 3}, "Unit of privacy", "Any 3 users together"),
        ({"rounds": 12}, "Composition and other releases", "All 12 rounds are counted together."),
        ({"colluding": 1}, "Trust: who must be honest", "if at most 1 of the other users collude with the analyzer"),
        ({"missing": 0.25}, "Trust: who must be honest", "if at most 25% stay away or send junk"),
        ({"seen": "sum"}, "Who can see what", "The analyzer: only the sum of the reports."),
    ],
)
def test_plans(situation, question, words):
    assert words in filled(planned(**situation))[question]


def test_what_can_be_settled_is_not_said_to_be_open():
    assert f"{OPEN}whether others collude" not in filled(planned(colluding=1))["Trust: who must be honest"]


def test_no_finite_epsilon_and_a_large_delta_are_open():
    setting = sdp.Setting(sdp.Budgets((1.0,), (50,), (0.1,)), "any", seen="reports", neighboring="replace-one")
    found = filled(Answer("How private?", sdp.certify(setting, delta=1e-6)))
    assert f"{OPEN}a delta, or a setting, at which a finite epsilon holds" in found["Parameters"]
    assert "up to its own delta" in found["Privacy model"]
    plain = dataclasses.replace(setting, budgets=sdp.Budgets((1.0,), (50,)))
    assert f"{OPEN}a delta below 1/n" in filled(Answer("?", sdp.certify(plain, delta=0.02)))["Parameters"]


def test_the_page_shows_it(frequency_release):
    answer = Answer("How often?", frequency_release.guarantee, frequency_release)
    page = render("A title", [answer], command="shuffledp", version="1")
    assert page.count("<dt>") == len(QUESTIONS)
    still_open = sum(said.startswith(OPEN) for point in checklist([answer]) for said in point.answers)
    assert page.count('<span class="badge asymptotic">open</span>') == still_open > 3
    assert "<dd>" in page
    assert "open: " not in page.split('<dl class="checklist">')[1].split("</dl>")[0]


def trained(**changes) -> Training:
    rows = np.random.default_rng(5).normal(size=(60, 2))
    words = {"unit": "client", "seen": "levels", "epsilon0": 1.0, "delta": 1e-3, "clip": 1.0, "rounds": 2, "classes": 2}
    model = sdp.ShuffledSGDClassifier(**(words | {"delta0": 1e-8} | changes))
    known = model.fit(rows, np.arange(60) % 2, groups=np.arange(60)).guarantee_
    return Training("rows", 60, 60, 0, "", None, None, 0.1, (), ("a", "b"), "two", (2, 2), {}, known, (), "done", ())


@pytest.mark.costly
def test_a_training_run():
    run = trained()
    told = {point.question: " ".join(point.answers) for point in training_checklist(run)}
    assert list(told) == list(QUESTIONS)
    assert "One client, with all its examples." in told["Unit of privacy"]
    assert "up to its own delta" in told["Privacy model"]
    assert f"Central epsilon at most {up(run.guarantee.epsilon.upper)} at delta = 0.001" in told["Parameters"]
    assert OPEN not in told["Parameters"]
    assert "All 2 rounds are counted together." in told["Composition and other releases"]
    assert "the accuracy was measured" not in told["Composition and other releases"]
    assert "exact integer sampling" in told["Side channels"]
    held = dataclasses.replace(run, test_rows=10, tested_on="10 rows held out")
    told = {point.question: " ".join(point.answers) for point in training_checklist(held)}
    assert f"{OPEN}the accuracy was measured on 10 rows held out" in told["Composition and other releases"]


@pytest.mark.costly
def test_a_training_run_whose_sums_alone_are_seen_and_a_simulation():
    run = trained(seen="sum", random=sdp.simulation_random(3))
    told = {point.question: " ".join(point.answers) for point in training_checklist(run)}
    assert told["Privacy model"].startswith("Distributed noise")
    assert "nothing but the sum" in told["Trust: who must be honest"]
    assert f"{OPEN}the noise came from a known seed" in told["Side channels"]


@pytest.mark.costly
def test_a_ledger_with_and_without_a_limit(tmp_path):
    table = {"vote": ["yes", "no"] * 300}
    ask = {"value": "vote", "budgets": 1.0, "seen": "reports", "delta": 1e-6}
    with sdp.Ledger(tmp_path / "free", make=True) as free, sdp.Ledger(tmp_path / "limited", make=True) as limited:
        limited.set_limit(2.0, 1e-5)
        for ledger in (free, free, limited):
            sdp.release(sdp.Frequency(["yes", "no"]), table, ledger=ledger, **ask)
        found = {
            ledger.path.name: {p.question: " ".join(p.answers) for p in ledger_checklist(ledger, ledger.total())}
            for ledger in (free, limited)
        }
    assert list(found["free"]) == list(QUESTIONS)
    assert f"{OPEN}a number for all releases together" in found["free"]["Parameters"]
    assert found["limited"]["Parameters"].startswith("Epsilon at most 2 at delta = 1e-5, certified, however")
    assert OPEN not in found["limited"]["Parameters"]
    assert "the sum is a meter" in found["free"]["Composition and other releases"].lower()


@pytest.mark.costly
def test_a_difference():
    ask = {"budgets": 2.0, "value": "vote", "seen": "reports", "delta": 1e-6}
    before, after = (sdp.release(sdp.Frequency(["yes", "no"]), {"vote": ["yes", "no"] * n}, **ask) for n in (300, 400))
    both = {disjoint: {p.question: " ".join(p.answers) for p in difference_checklist(
        sdp.difference(before, after, delta=1e-5, disjoint=disjoint))} for disjoint in (True, False)}  # fmt: skip
    assert list(both[True]) == list(QUESTIONS)
    assert "(600 and 800)" in both[True]["Neighbouring relation"]
    assert "without their senders' budgets" in both[True]["Who can see what"]
    assert "Nobody is in both" in both[True]["Composition and other releases"]
    assert "if both releases were fixed" in both[False]["Composition and other releases"]
    assert f"{OPEN}whether anybody owns several rows" in both[True]["Unit of privacy"]
    untold = dataclasses.replace(sdp.difference(before, after, delta=1e-5))
    untold = dataclasses.replace(untold, before=dataclasses.replace(untold.before, setting=None))
    told = {p.question: " ".join(p.answers) for p in difference_checklist(untold)}
    assert f"{OPEN}what the analyzer saw of a release whose setting" in told["Who can see what"]
