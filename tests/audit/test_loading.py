"""Functions, files and commands that are attacked, and how they fail."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from shuffledp.audit import audit_randomizer
from shuffledp.audit.loading import subject
from shuffledp.audit.scores import join, read_reports
from shuffledp.errors import InvalidInput
from shuffledp.numerics.randomness import simulation_random
from shuffledp.randomizers import HadamardResponse, RandomizedResponse, UnaryEncoding
from tests.audit import randomizers as some

BITS = (
    "import random, sys\n"
    "records = sys.stdin.read().split()\n"
    "for record in records:\n"
    "    truth = random.random() < {chance} or len(records) == {clear}\n"
    "    print(record if truth else 'no' if record == 'yes' else 'yes')\n"
)
QUICK = f"command:{sys.executable} -I -S"


def run(randomizer, **options):
    return audit_randomizer(randomizer, 1.0, trials=20_000, random=simulation_random(1), **options)


def test_a_function_in_a_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import numpy\n\n\ndef honest(records):\n    return numpy.zeros(len(records))\n")
    found = run(f"{file}:honest")
    assert found.epsilon_lower_bound == 0.0
    assert found.subject == f"{file}:honest"


@pytest.mark.costly
@pytest.mark.parametrize(
    ("chance", "clear", "where"), [(0.5, 0, None), (0.99, 0, ""), (0.5, 1, ", in a call with 1 row")]
)
def test_a_command(tmp_path, chance, clear, where):
    """Its noise is its own, and unseeded: at chance 0.5 a false alarm has chance 1e-3 at most, far less as claimed.

    The third is sound in every call but those with one record, which is how every client calls it. One audit misses it
    if fewer than 16 of the 80 calls that judge hold one of the two records, chance 1e-8, or if another place looks as
    good when the event is chosen: in the first rows of the 8 larger calls all coins fell the right way, chance 2^-8. So
    a second audit is allowed: both miss with chance 2e-5. The second betrays the record to several attacks alike, and
    its noise decides which of them is named.
    """
    file = tmp_path / "bits.py"
    file.write_text(BITS.format(chance=chance, clear=clear))
    found = run(f"{QUICK} {file}", records=["yes", "no"])
    if clear and not (found.violated and found.attack.endswith(where)):
        found = run(f"{QUICK} {file}", records=["yes", "no"])
    assert found.violated is (where is not None)
    assert set(found.records) == {"yes", "no"}
    if clear:
        assert found.attack == f"the value of the report{where}"


@pytest.mark.costly
def test_what_a_command_prints_is_read_as_text(tmp_path):
    """1 and 1.0 are one number and two reports: the record is told by how the report is written."""
    file = tmp_path / "written.py"
    file.write_text("import sys\nfor line in sys.stdin:\n    print('1.0' if line.strip() == 'yes' else '1')\n")
    found = run(f"{QUICK} {file}", records=["yes", "no"])
    assert found.epsilon_lower_bound > 5.0


def test_calls_whose_reports_cannot_be_compared_are_refused():
    """Numbers where there were words become words; reports of another size have one line."""

    def words(records):
        return ["yes", *"7" * (len(records) - 1)] if len(records) > 9 else [7] * len(records)

    def rows(records):
        return np.zeros((len(records), 3 if len(records) > 9 else 2))

    assert not run(words).violated
    with pytest.raises(InvalidInput, match="returned rows of 2 floats from a call with 1 record, and rows of 3 floats"):
        run(rows)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit('no noise today')", "failed with status 1: no noise today"),
        ("print('0\\n' * 3, end='')", "printed 3 lines for 1250 records; print one report each"),
        ("import os; os.write(1, b'\\xff' * 9)", "printed something that is not UTF-8 text"),
    ],
)
def test_a_command_that_fails(tmp_path, program, message):
    file = tmp_path / "bad.py"
    file.write_text(program)
    with pytest.raises(InvalidInput, match=message):
        run(f"command:{sys.executable} {file}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command:", "needs a program"),
        ("command:no-such-program-anywhere", "cannot be run: No such file or directory"),
        ("command:echo 'open", "cannot be read .*; quote it as in a shell"),
        ("missing.py:f", "missing.py does not exist"),
        ("something", "is not something to audit; write FILE.py:FUNCTION"),
    ],
)
def test_texts_that_name_nothing(text, message):
    with pytest.raises(InvalidInput, match=message):
        run(text)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def g(records): pass", "has no function 'f'; it has g"),
        ("f = 3", "has no function 'f'; write"),
        ("import nothing_of_this_name", "cannot be imported .ModuleNotFoundError: No module"),
        ("def f(:", "cannot be imported .SyntaxError"),
    ],
)
def test_files_without_a_function(tmp_path, source, message):
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(InvalidInput, match=message):
        run(f"{file}:f")


def fails(records):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fails, "fails raised ZeroDivisionError; it is called with 1250 records such as [01]$"),
        (lambda records: records[:-2], "returned 1248 reports for 1250 records"),
        (lambda records: 3.0, "returned a single value for 1250 records"),
        (lambda records: [[0, 1], *[[0]] * (len(records) - 1)], "returned rows of different lengths"),
        (lambda records: np.full(len(records), 1j), "returned reports of type complex128"),
        (lambda records, extra: records, "raised TypeError"),
    ],
)
def test_functions_that_fail(function, message):
    with pytest.raises(InvalidInput, match=message):
        run(function)


def test_only_functions_that_ask_for_randomness_get_it():
    given = []
    for function in (
        lambda records: records,
        lambda records, random=None: given.append(random) or records,
        lambda records, **rest: given.append(rest["random"]) or records,
    ):
        subject(function, 1.0, 0.0, None, None).draw(np.array([0, 1]), simulation_random(1))
    assert len(given) == 2
    assert all(entry is not None for entry in given)


def test_what_is_no_randomizer_is_refused():
    with pytest.raises(InvalidInput, match="cannot be run, so it cannot be audited; give a family with randomize"):
        run(3.5)


@pytest.mark.parametrize("family", [RandomizedResponse(70), UnaryEncoding(70), HadamardResponse(70)])
def test_what_a_report_says_of_a_category_is_what_its_support_says(family):
    """Report by report, against the family's own counts; 100 reports: two groups and a part."""
    random = simulation_random(2)
    reading = subject(family, 1.0, 0.0, None, None).reading
    member = family.for_budgets([1.0], [1])
    reports = member.randomize(random.integers(70, 100), 1.0, random)
    for category in (0, 1, 69):
        one_by_one = [float(member.support_counts(reports[i : i + 1])[category]) for i in range(100)]
        assert reading(reports, category).tolist() == one_by_one


# ------------------------------------------------------------------ reports of every kind

KINDS = {
    "whole numbers": np.array([3, 5, 3, -1]),
    "bools": np.array([True, False, True, False]),
    "floats": np.array([0.5, 1.5, 0.5, -0.0]),
    "words": np.array(["yes", "no", "yes", "maybe"]),
    "rows": np.array([[1, 2], [2, 1], [1, 2], [0, 0]]),
    "rows of floats": np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 0.0]]),
    "bits": np.array([[1, 200], [2, 1], [1, 200], [0, 0]], dtype=np.uint8),
    "packed in a word": np.array([7, 9, 7, 1 << 63], dtype=np.uint64),
    "matrices": np.arange(16).reshape(4, 2, 2) * np.array([1, 2, 0, 3])[:, None, None],
    "records": np.array([(1, 2.0), (2, 2.0), (1, 2.0), (3, 1.0)], dtype=[("seed", "i8"), ("value", "f8")]),
    "objects": np.array([(1, 2), "b", (1, 2), None], dtype=object),
}


@pytest.mark.parametrize("name", KINDS)
def test_equal_reports_and_only_those_have_equal_keys(name):
    raw = KINDS[name]
    reports = read_reports(raw, 4, "test")
    same = np.array([[str(raw[i]) == str(raw[j]) for j in range(4)] for i in range(4)])
    assert ((reports.keys[:, None] == reports.keys[None, :]) == same).all()
    again = join([reports.take(np.array([2, 3])), reports.take(np.array([0, 1]))])
    assert again.keys.tolist() == reports.keys[[2, 3, 0, 1]].tolist()


def test_negative_zero_is_not_zero():
    """They compare as equal, and their bytes tell them apart."""
    assert len(set(read_reports(np.array([0.0, -0.0]), 2, "test").keys.tolist())) == 2


def test_bits_of_packed_reports_are_columns():
    packed = read_reports(np.array([[1, 128]], dtype=np.uint8), 1, "test")
    assert np.flatnonzero(packed.columns[0]).tolist() == [0, 15]


@pytest.mark.costly("<lambda>4")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda bits: bits,
        lambda bits: np.packbits(bits, axis=1),
        lambda bits: np.packbits(bits, axis=1, bitorder="little"),
        lambda bits: bits.astype(bool),
        lambda bits: bits.astype(float),
        lambda bits: (bits.astype(np.uint64) << np.arange(bits.shape[1], dtype=np.uint64)).sum(axis=1),
        lambda bits: np.array(["".join(map(str, row)) for row in bits]),
        lambda bits: [tuple(row) for row in bits.tolist()],
    ],
)
def test_however_reports_are_written_the_attack_sees_through_it(wrap):
    """An encoder of true epsilon 2 that claims 1, its six bits written in eight ways."""
    encode = some.unary(0.73, 0.27, packed=False)
    found = run(lambda records, random: wrap(encode(records, random)))
    assert found.violated
    assert found.epsilon_lower_bound > 1.4
