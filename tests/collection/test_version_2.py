"""Version 2 of the task: one law of dummies for all columns, kinds of questions, and bytes that name no mixer."""

from __future__ import annotations

import json
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from shuffledp.collection.analyzer import open_batch
from shuffledp.collection.batch import AnalyzerKey, Batch, Outer, open_outer, split_inners
from shuffledp.collection.client import Client, answer_code
from shuffledp.collection.closing import close_task
from shuffledp.collection.draw import Family, draw_report, pieces_of
from shuffledp.collection.ingest import hold, open_reports
from shuffledp.collection.kinds import half_width
from shuffledp.collection.laws import MOST_LAW_WORK, drawn_columns, law_of_task
from shuffledp.collection.promise import (
    check_crowd,
    check_floor,
    cost_of_answer,
    floor_of,
    promised_profiles,
)
from shuffledp.collection.release import write_release
from shuffledp.collection.release_page import release_document
from shuffledp.collection.sealing import OVERHEAD, Opener, sign
from shuffledp.collection.survey import draft_of_survey
from shuffledp.collection.task import Draft, PostedTask
from shuffledp.collection.verify import verify
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from tests.collection.batches import analyzer_key, batch_of, people, reports_of_people
from tests.collection.laws import exact_law
from tests.collection.service import TIMES, Time, codes_of, hash_of, store_at
from tests.collection.tasks import (
    ANALYST,
    ANALYZER,
    IDENTITY,
    KINDS,
    SHUFFLER,
    bits,
    choice,
    document,
    parse,
    posted_second,
    scale,
    second,
    several,
    table,
    words,
)
from tests.collection.test_draw import law_of

USUAL = ((2.0, 60, 1.0), (4.0, 180, 1.0), (6.0, 60, 1.0))
VECTORS = json.loads((Path(__file__).parent / "vectors_2.json").read_text(encoding="utf-8"))


def test_the_frozen_task_of_version_2():
    frozen = VECTORS["task"]
    task = PostedTask.parse(bytes.fromhex(frozen["posted"]))
    assert (task.id, task.size) == (frozen["id"], frozen["size"])
    assert PostedTask.post(task.draft, task.shuffler_key, IDENTITY).data == task.data
    assert task.data[:5] == b"SHFT\x02"
    (size,) = struct.unpack_from("<I", task.data, 5)
    assert task.data[9 + size] == 0  # no mixer
    assert task.inner_info(3) == b"shuffledp/2 inner\0" + task.digest + b"\3"
    assert [question.kind for question in task.draft.questions] == frozen["kinds"]
    check_floor(task.draft)


def test_a_frozen_report_and_batch_of_version_2_open():
    task = PostedTask.parse(bytes.fromhex(VECTORS["task"]["posted"]))
    report = VECTORS["report"]
    outer = open_outer(task, bytes.fromhex(report["sealed"]), Opener(SHUFFLER))
    assert isinstance(outer, Outer)
    analyzer = Opener(ANALYZER)
    opened = [
        [int.from_bytes(analyzer.open(piece, task.inner_info(place)) or b"\xff", "little") for piece in pieces]
        for place, pieces in enumerate(split_inners(task, outer.inners))
    ]
    assert opened == report["pieces"]
    data = bytes.fromhex(VECTORS["batch"])
    assert data[:6] == b"SHFB\2\1"
    batch = Batch.parse(data)
    assert batch.manifest.rows == tuple(column.rows(batch.manifest.n) for column in task.draft.columns)
    (size,) = struct.unpack_from("<I", data, 6)
    assert sign(IDENTITY, b"shuffledp/2 batch\0" + batch.manifest.data) == data[10 + size : 74 + size]


def with_mixers(task: PostedTask, mixers: int) -> bytes:
    end = 9 + len(task.draft.data)
    body = task.data[:end] + bytes([mixers]) + bytes(128 * mixers) + task.data[end + 1 : -64]
    return body + sign(IDENTITY, b"shuffledp/2 posted\0" + body)


@pytest.mark.parametrize("mixers", [1, 3, 255])
def test_a_task_that_names_mixers_needs_a_newer_shuffledp(mixers):
    with pytest.raises(InvalidInput, match="several shufflers in a row, which need a newer shuffledp") as refused:
        PostedTask.parse(with_mixers(posted_second(), mixers))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("changed", [{"mix_by": "2030-03-01T08:00:00Z"}, {"shufflers": ["The kitchen", "The council"]}])
def test_a_draft_that_names_mixers_needs_a_newer_shuffledp(changed):
    whole = second()
    if "mix_by" in changed:
        whole |= changed
    else:
        whole["operated_by"] = {"analyzer": "A", "page": "A"} | changed
    with pytest.raises(InvalidInput, match="need a newer shuffledp"):
        parse(whole)


WRONG = [
    (["dummies", "law"], "uniform", "ball"),
    (["dummies", "radius"], [], "a list of 1 to"),
    (["dummies", "radius"], ["1"], "add up to 2\\^64"),
    (["dummies", "radius"], [1 << 64], "decimal digits"),
    (["dummies", "centre"], [1, 2], "a list of 1"),
    (["dummies", "centre"], [-1], "whole numbers from 0"),
    (["dummies", "more"], 1, "unknown key"),
    (["questions", 0, "dummies"], {"law": "uniform", "count": 1}, "unknown key"),
    (["questions", 0, "family"], "hadamard:5", "krr:5"),
    (["version"], 1, "dummies"),
]


@pytest.mark.parametrize(("path", "value", "told"), WRONG, ids=[f"{'.'.join(map(str, p))}={v}" for p, v, _ in WRONG])
def test_a_wrong_draft_of_version_2_is_one_clear_line(path, value, told):
    whole = second()
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(InvalidInput, match=told) as refused:
        parse(whole)
    assert "\n" not in str(refused.value)


LIMITS = [
    (several(33), "a list of 2 to 32"),
    (several(1), "a list of 2 to 32"),
    (table(9, 8), "at most 64 cells; 9 rows and 8 columns make 72"),
    (words(1001), "a list of 2 to 1000"),
    (scale((1, 2, 2)), "must ascend"),
    (scale((0, 0.1, 1000)), "at most 200 steps"),
    (bits(33), "bits:B with B from 1 to 32"),
    (
        words(5) | {"words": [{"en": "a"}, {"en": "b"}, {"en": " A"}, {"en": "c"}, {"en": "d"}]},
        "two words read the same",
    ),
    (several(2) | {"options": [{"en": "a"}, {"en": "A"}]}, "two options read the same"),
    (table(2, 2) | {"rows": [{"en": "a"}, {"en": "A"}]}, "two rows read the same"),
]


@pytest.mark.parametrize(("question", "told"), LIMITS, ids=[told for _, told in LIMITS])
def test_what_a_kind_does_not_allow_is_one_clear_line(question, told):
    with pytest.raises(InvalidInput, match=told) as refused:
        parse(second(question, centre=1))
    assert "\n" not in str(refused.value)


def test_too_many_columns_are_refused():
    with pytest.raises(InvalidInput, match="at most 64 columns"):
        parse(second(several(32), several(32), choice(2), centre=1))


def test_version_1_knows_choices_and_numbers_alone():
    with pytest.raises(InvalidInput, match="choice, number"):
        parse(document(scale() | {"dummies": {"law": "uniform", "count": 3}}))


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("keep", [0, 2**63 + 1, 2**64 - 1])
def test_a_number_of_several_bits_is_drawn_by_the_stated_law_exactly(size, keep):
    family = Family(f"bits:{size}", 6)
    for record in range(6):
        law = law_of(lambda random: draw_report(family, keep, record, random), family.reports)  # noqa: B023
        assert law == exact_law(family, keep, record)
        mean = sum((v * p for v, p in enumerate(law)), Fraction(0)) / size
        own = Fraction(keep, 2**64)
        assert mean == own * Fraction(record, 5) + (1 - own) / 2


def test_pieces_stand_in_a_uniformly_random_order():
    family = Family("bits:4", 5)
    for report in range(5):
        law = law_of(lambda random: int("".join(map(str, pieces_of(family, report, random))), 2), 16)  # noqa: B023
        ways = [code for code in range(16) if code.bit_count() == report]
        assert [law[code] for code in ways] == [Fraction(1, len(ways))] * len(ways)


@pytest.mark.costly(but=("bit",))
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_promised_drawn_closed_opened_and_verified(name, tmp_path):
    task = posted_second(KINDS[name], levels=USUAL, **TIMES, at_least=20)
    check_floor(task.draft)
    store = store_at(tmp_path, task)
    codes = codes_of(40)
    store.add_codes(task.digest, [hash_of(code) for code in codes])
    answers = task.draft.questions[0].answers
    sent = b"".join(Client(task).seal([place % answers], place % 3, code) for place, code in enumerate(codes))
    (verdicts,) = hold(store, [open_reports(sent, task, Opener(SHUFFLER))])
    assert verdicts == bytes(40)
    batch = Batch.parse(close_task(store, task.digest, clock=Time()).read_bytes())
    store.close()
    sizes = [column.rows(40) for column in task.draft.columns]
    assert list(batch.manifest.rows) == sizes
    opened = open_batch(batch, analyzer_key(task))
    assert (opened.promise_kept, opened.junk_seen) == (True, 0)
    release = write_release(release_document(opened), task, ANALYST)
    assert verify(task, release, batch).promise_kept


def test_rows_that_do_not_add_up_are_refused_by_open_and_verify():
    task = posted_second(levels=USUAL)
    columns, counts = reports_of_people(task, people(np.random.default_rng(1), (9, 9, 9), 5), simulation_random(1))
    for change in (columns[0][:-1], [*columns[0], 1]):
        with pytest.raises(InvalidInput, match="the columns have"):
            batch_of(task, [change], counts)


def test_dummies_are_one_draw_and_the_same_for_the_same_chance():
    draft = parse(second(choice(5), bits(5), several(3), levels=USUAL))
    one, two = (list(drawn_columns(draft, simulation_random(7))) for _ in range(2))
    assert one == two
    assert [len(rows) for rows in one] == [column.dummies.count for column in draft.columns]
    law = law_of_task(draft)
    assert len({tuple(map(tuple, drawn_columns(draft, simulation_random(seed)))) for seed in range(9)}) == 9
    assert law.rows == tuple(len(rows) for rows in one)


def test_a_promise_that_the_dummies_do_not_keep_is_refused_by_everybody():
    whole = second(choice(5), levels=USUAL)
    whole["dummies"]["centre"][0] -= 1
    draft = parse(whole)
    with pytest.raises(InvalidInput, match="only make"):
        check_floor(draft)
    task = PostedTask.post(draft, Opener(SHUFFLER).public, IDENTITY)
    with pytest.raises(InvalidInput, match="draft it again"):
        Client(task)


def test_one_answer_costs_what_all_cost_and_the_ledger_enters_that():
    draft = parse(second(choice(5), choice(2), levels=USUAL))
    floors = check_floor(draft)
    assert cost_of_answer(draft, 0) == cost_of_answer(draft, 1) == floors == floor_of(draft)
    for profile, floor, level in zip(promised_profiles(draft), floors, draft.levels, strict=True):
        assert abs(profile.epsilon(draft.delta).upper / floor - 1.0) < 1e-6
        assert profile.delta(floor).upper <= draft.delta
        assert floor <= level.promise


def test_under_open_admission_two_answers_are_covered():
    one, two = (parse(second(levels=((4.0, 9, 1.0),), admission=admission)) for admission in ("codes", "open"))
    assert two.columns[0].dummies.count > 1.8 * one.columns[0].dummies.count
    assert check_floor(two)[0] <= 1.0


def test_the_number_of_a_crowd_is_certified_without_the_dummies():
    whole = second(levels=((1.0, 5000, 0.8),))
    draft = parse(whole)
    check_crowd(draft)
    whole["levels"][0]["crowd"] = 1e-3
    with pytest.raises(InvalidInput, match="honest crowd"):
        check_crowd(parse(whole))


def test_a_task_of_somebody_else_cannot_keep_a_client_busy():
    radius = [str(1 << 52)] * 4096
    whole = second(choice(1000), centre=1)
    whole["dummies"] = {"law": "ball", "radius": radius, "centre": [1]}
    with pytest.raises(InvalidInput, match=f"limit of {MOST_LAW_WORK:,}"):
        check_floor(parse(whole))


def test_answers_in_words():
    asked = parse(second(*(KINDS[kind] for kind in ("several", "table", "list", "scale")))).questions
    assert [answer_code(asked[0], given) for given in ("option 1; OPTION 3", "-", "option 4")] == [5, 0, 8]
    assert answer_code(asked[1], "Row 2 / column 1") == 3
    assert answer_code(asked[2], "word 7") == 6
    assert answer_code(asked[3], "choice 5") == 4
    odd = parse(second(several(2) | {"options": [{"en": "tea; black"}, {"en": "-"}]})).questions[0]
    assert [answer_code(odd, given) for given in ("tea; black", "-")] == [1, 2]
    with pytest.raises(InvalidInput, match="semicolon"):
        answer_code(asked[0], "option 9")


def test_a_person_s_report_has_the_same_size_whatever_is_answered():
    task = posted_second(several(3), bits(5), choice(300), levels=((4.0, 9, 1.0),))
    sizes = {
        len(Client(task).seal([mask, number, mask], 0, bytes(16)))
        for mask, number in ((0, 0), (7, 100), (5, 50), (2, 99))
    }
    assert sizes == {task.size} == {OVERHEAD + 1 + 16 + 3 * 49 + 5 * 49 + 50}


def test_a_draft_is_read_again_as_it_was_written():
    for question in KINDS.values():
        draft = parse(second(question))
        assert Draft.parse(draft.data) == draft


@pytest.mark.costly
def test_the_example_is_a_survey_of_every_kind_that_is_useful_at_300_people():
    survey = (Path(__file__).parents[2] / "examples" / "survey.toml").read_bytes()
    draft = draft_of_survey(survey, AnalyzerKey(ANALYZER, ANALYST, bytes(32)))
    assert [question.kind for question in draft.questions] == ["choice", "scale", "several", "number", "table", "list"]
    assert [(level.epsilon0, level.planned) for level in draft.levels] == [(2.0, 60), (4.0, 180), (6.0, 60)]
    check_floor(draft)
    for place, question in enumerate(draft.questions):
        wide = half_width(draft, place, (60, 180, 60)) / (60.0 if question.kind == "number" else 1.0)
        assert wide < 0.08, question.kind


def survey_of(question: str) -> bytes:
    text = """title = "Lunch"
organizer = "The kitchen"
contact = "kitchen@example.org"
privacy_notice = "https://example.org/privacy"
opens = 2026-01-01T08:00:00Z
closes = 2099-01-31T18:00:00Z
expires = 2099-02-28T18:00:00Z
people = 300
operated_by = {analyzer = "A", shuffler = "B", page = "C"}
[[questions]]
text = "Which?"
"""
    return (text + question).encode()


REFUSED = [
    (f"options = {[str(j) for j in range(33)]}", "options must be at most 32; got 33"),
    (f"rows = {[str(j) for j in range(9)]}\ncolumns = {[str(j) for j in range(8)]}", "a table has at most 64 cells"),
    (f"words = {[str(j) for j in range(20_001)]}", "words must be at most 20,000, and of a dictionary more than 1,000"),
    ('words = ["soup", "Soup "]', "two words read the same"),
    ('rows = ["a", "b"]', "needs answers of one kind"),
    ('options = ["a", "b"]\nchoices = ["a", "b"]', "needs answers of one kind"),
    ('choices = ["a", "b", "c"]\nvalues = [1, 2]', "'values' must be a list of 3"),
    ('options = ["a", "b"]\nfamily = "hadamard"', "the family must be rr, or be left out"),
    ('low = 0\nhigh = 10\nstep = 1\nfamily = "bits:40"', "bits:B with B from 1 to 32"),
    ("free_text = true", "nobody can add dummies to a word that nobody knows"),
]


@pytest.mark.parametrize(("question", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_a_mistake_in_a_question_of_a_survey_is_one_clear_line(question, told):
    with pytest.raises(InvalidInput) as refused:
        draft_of_survey(survey_of(question), AnalyzerKey(ANALYZER, ANALYST, bytes(32)))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.costly
def test_a_survey_with_hadamard_is_drafted_as_version_1():
    asked = survey_of('choices = ["a", "b", "c"]\nfamily = "hadamard"')
    draft = draft_of_survey(asked, AnalyzerKey(ANALYZER, ANALYST, bytes(32)))
    assert (draft.version, draft.questions[0].family.name) == (1, "hadamard:3")
    assert [level.epsilon0 for level in draft.levels] == [2.0, 4.0]
    with pytest.raises(InvalidInput, match="cannot be asked beside a question of the family hadamard"):
        draft_of_survey(
            asked + b'\n[[questions]]\ntext = "More?"\noptions = ["a", "b"]', AnalyzerKey(ANALYZER, ANALYST, bytes(32))
        )
