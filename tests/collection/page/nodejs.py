"""The page's modules in node: they are copied beside each other as they stand, and a script calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from shuffledp.collection.survey_page import modules
from tests.collection.page.chromium import NODE

REFUSED = """
import { readTask } from "./task.js";
const found = [];
for (const [posted, id] of given) found.push(await refusal(() => readTask(bytes(posted), id)));
give(found);
"""
"""Script that gives, for each of the given tasks as (bytes, id), the reason why the page refuses it."""


def lay_out(folder: Path) -> Path:
    """Write the modules into a folder from which node imports them."""
    for name, source in modules().items():
        (folder / f"{name}.js").write_text(source, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return folder


def run(folder: Path, script: str, given: object = None) -> Any:
    """Run a script that reads `given` and ends with a call of `give`, whose argument is returned.

    Whole numbers of any size come and go as text; bytes as hexadecimal text, by `hex` and `bytes`.
    """
    helpers = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8"));
const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");
const give = (value) => console.log(JSON.stringify(value, (_, one) => (typeof one === "bigint" ? String(one) : one)));
const refusal = async (attempt) => { try { await attempt(); return null; } catch (error) { return error.message; } };
"""
    path = folder / "script.mjs"
    path.write_text(helpers + script, encoding="utf-8")
    done = subprocess.run(
        [NODE, str(path)], input=json.dumps(given), capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise AssertionError(done.stderr[-2000:])
    return json.loads(done.stdout)
