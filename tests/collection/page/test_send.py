"""What a device does with a report whose code was refused: one person's report, whatever links and tabs there are."""

from __future__ import annotations

import pytest

from tests.collection.page.chromium import no_node

pytestmark = pytest.mark.skipif(bool(no_node()), reason=no_node())

TWO_TABS = """
import { overMemory } from "./keep.js";
import { underAnotherCode } from "./send.js";
const keep = overMemory();
const refused = { slot: "one", id: "T", level: 1, state: "refused", reason: "code", inners: ["drawn"] };
await keep.update("one", () => refused);
let sealings = 0;
const seal = (inners) => `${inners[0]}, sealed ${++sealings}`;
const records = await Promise.all(["two", "three"].map((slot) => underAnotherCode(keep, refused, slot, seal)));
const late = await underAnotherCode(keep, refused, "four", seal);
await keep.update("two", ({ sealed, inners, ...line }) => ({ ...line, state: "held" }));
const after = await underAnotherCode(keep, refused, "five", seal);
give({ records, late, after, all: await keep.all() });
"""


def test_two_tabs_with_two_new_codes_send_one_report(node):
    """Each tab moved the report to the slot of its own code: it left twice."""
    made = node(TWO_TABS)
    one, two = made["records"]
    assert one == two == made["late"]
    assert (one["slot"], one["state"], one["sealed"], one["inners"]) == ("two", "waiting", "drawn, sealed 1", ["drawn"])
    assert "reason" not in one
    assert made["after"]["state"] == "held", "what was answered is not sealed again"
    assert [record["slot"] for record in made["all"]] == ["two"]


def test_a_report_does_not_take_the_place_of_another_person_s(node):
    made = node("""
import { overMemory } from "./keep.js";
import { underAnotherCode } from "./send.js";
const keep = overMemory();
const refused = { slot: "one", id: "T", level: 1, state: "refused", reason: "code", inners: ["drawn"] };
await keep.update("one", () => refused);
await keep.update("two", () => ({ slot: "two", state: "held" }));
give({ found: await underAnotherCode(keep, refused, "two", () => "sealed"), all: await keep.all() });
""")
    assert made["found"] == {"slot": "two", "state": "held"}
    assert [(record["slot"], record["state"]) for record in made["all"]] == [("one", "refused"), ("two", "held")]
