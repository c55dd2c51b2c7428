"""The page: self-contained, says the truth, fits a telephone and a desk."""

from __future__ import annotations

import dataclasses
import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import shuffledp as sdp
from shuffledp.accounting import drawn_profile
from shuffledp.questions.question import AnswerLine
from shuffledp.report.answer import Answer
from shuffledp.report.page import bars_picture, render
from shuffledp.report.wording import up

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--v=0")  # fmt: skip
VOID = {"meta", "link", "br"}


class Balanced(HTMLParser):
    """Collects tags and checks that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag


def rendered(*answers: Answer) -> str:
    return render("A title", answers, command="shuffledp mean 'my table.csv' --value x", version="1.2.3")


def drawn(*answers: Answer) -> list[Answer]:
    """Add the curve of each guarantee."""
    return [dataclasses.replace(answer, profile=drawn_profile(answer.guarantee)) for answer in answers]


@pytest.fixture(scope="session")
def page(mean_release, frequency_release):
    return rendered(
        *drawn(
            Answer("What is the mean of x?", mean_release.guarantee, mean_release, (5.0,)),
            Answer("How often?", frequency_release.guarantee, frequency_release),
        )
    )


def test_the_page_is_whole_and_loads_nothing(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    tags = [tag for tag, _ in parser.seen]
    assert not {"script", "img", "iframe", "object", "embed"} & set(tags)
    for _, attributes in parser.seen:
        assert not (attributes.get("src") or "").strip()
        assert (attributes.get("href") or "data:,").startswith("data:")
    assert "@import" not in page
    assert "url(" not in page
    assert tags.count("svg") == 6


def test_the_page_says_what_must_be_said(page, mean_release):
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert "An attacker who sees everything the analyzer sees" in text
    assert f"ε ≤ {up(mean_release.guarantee.epsilon.upper)}" in text
    assert "asymptotic (not a guarantee)" in text
    assert "NOT PRIVATE" in text
    assert "The shuffler is trusted" in text
    assert "whoever ran it held the records" in text
    assert "shuffledp mean 'my table.csv' --value x" in text
    assert "shuffledp 1.2.3" in text
    assert "all questions together cost at most the sum" in text


def test_names_from_the_data_are_text_and_nothing_else(page):
    assert "<b>yes" not in page
    assert "&lt;b&gt;yes" in page


def test_a_private_page_has_no_alarm(frequency_release):
    page = rendered(Answer("How often?", frequency_release.guarantee, frequency_release))
    assert "NOT PRIVATE" not in page
    assert "keyed by the operating system" in page


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        (sdp.Budgets((0.0,), (50,)), "The reports carry no information"),
        (sdp.Budgets((1.0,), (50,), (0.1,)), "No finite ε holds"),
        (sdp.Budgets((1.0,), (1,)), "One randomizer, the same for all people of a budget"),
    ],
)
def test_pages_about_plans(budgets, words):
    setting = sdp.Setting(budgets, "any", seen="reports", neighboring="replace-one")
    page = rendered(Answer("How private?", sdp.certify(setting, delta=1e-6)))
    assert words in page
    assert "No noise was drawn" in page


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        ({}, ["Each person sends one report per question", "Protected is one person's record"]),
        (
            {"rounds": 12},
            [
                "The number of rounds, 12, and everybody's budget in each are fixed beforehand",
                "every round draws fresh noise and a fresh shuffle",
                "The budget ε₀ is that of one round",
                "Each person sends one report in a round",
                "towards it only the own budget ε₀ of every single report protects",
            ],
        ),
        ({"rounds": 2, "linked": True}, ["every round draws fresh noise, while one shuffle may serve all of them"]),
        ({"reports_per_user": 3}, ["Each person sends 3 reports in a round", "ε₀ of every single report protects"]),
        ({"group_size": 4}, ["Protected are the records of any 4 people together"]),
        ({"colluding": 7}, ["At most 7 other people show the analyzer which reports are theirs"]),
        ({"missing": 0.25}, ["At most 25% of the people stay away or send junk; who they are does not depend"]),
    ],
)
def test_assumptions_follow_the_situation(situation, words):
    setting = sdp.Setting(sdp.Budgets((1.0,), (50,)), "any", seen="reports", neighboring="replace-one", **situation)
    known = sdp.certify(dataclasses.replace(setting, rounds=1), delta=1e-6)
    page = rendered(Answer("How private?", dataclasses.replace(known, setting=setting)))
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert all(word in text for word in words)


def browse(tmp_path: Path, document: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "page.html"
    file.write_text(document, encoding="utf-8")
    call = [str(CHROMIUM), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *options, file.as_uri()]
    return subprocess.run(call, capture_output=True, text=True, timeout=600, check=True)


@pytest.mark.costly
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("width", [380, 1280])
def test_the_page_in_a_real_browser(page, tmp_path, width):
    # A frame of the given width holds the page; the frame's document then tells whether anything sticks out.
    opened = page.replace("<details>", "<details open>")
    frame = (
        f'<!doctype html><iframe id="f" width="{width}" height="900" srcdoc="{html.escape(opened)}"></iframe>'
        '<script>addEventListener("load", () => { const d = document.getElementById("f").contentDocument;'
        'const svg = [...d.querySelectorAll("svg")].map(s => s.getBoundingClientRect());'
        'document.body.dataset.widths = d.documentElement.scrollWidth + "/" + d.documentElement.clientWidth;'
        "document.body.dataset.drawn = svg.filter(r => r.width > 200 && r.height > 30).length; });</script>"
    )
    done = browse(tmp_path, frame, "--dump-dom")
    found = re.search(r'data-widths="(\d+)/(\d+)"', done.stdout)
    assert found is not None, done.stderr
    assert int(found[1]) <= int(found[2]) <= width
    assert 'data-drawn="6"' in done.stdout
    assert "CONSOLE" not in done.stderr


@pytest.mark.costly
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_the_page_can_be_pictured(page, tmp_path):
    picture = tmp_path / "page.png"
    done = browse(tmp_path, page, f"--screenshot={picture}", "--window-size=1280,900")
    assert picture.stat().st_size > 20_000, done.stderr
    assert "CONSOLE" not in done.stderr


def rows_of(*names: str) -> list[AnswerLine]:
    return [AnswerLine(name, 0.2, 0.1, 0.1, 0.3, label=(name,)) for name in names]


def test_no_name_beside_a_bar_is_cut():
    """Two rows of a table were both called "kitchen / would…" in its picture."""
    names = ["kitchen / would stay", "kitchen / would leave", "a word " * 12 + "<b>"]
    drawn = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", bars_picture(rows_of(*names), None))))
    assert "…" not in drawn
    assert all(name in drawn for name in names)
    short = bars_picture(rows_of("soup", "fish"), None)
    assert short.count('text-anchor="end"') == 4


def test_a_difference_of_shares_is_drawn_in_points():
    """A difference of 0.2 points was written "0.2%", as if it were a share."""
    picture = bars_picture(
        [AnswerLine("soup", -0.002, 0.1, -0.1, 0.1), AnswerLine("fish", 0.0, 0.1, -0.1, 0.1)], None, differences=True
    )
    assert re.findall(r">([-+.\d]+%?)</text>", picture) == ["-0.2", "+0.0"]
