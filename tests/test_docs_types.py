"""The code of the pages passes pyright strict: what a question answers with has one type.

Functions that a page defines need no annotations, for its readers' sake; all that they call has types.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import shuffledp
from tests.test_docs_site import DOCS, PAGES, SKETCHES, blocks, short

RULES = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "extraPaths": [str(Path(shuffledp.__file__).parent.parent)],
    **dict.fromkeys(
        (
            "reportUnknownMemberType", "reportUnknownVariableType", "reportUnknownArgumentType",
            "reportUnknownParameterType", "reportMissingParameterType", "reportUnusedExpression",
            "reportMissingTypeStubs", "reportMissingTypeArgument",
        ),
        False,
    ),
}  # fmt: skip
"""The project's own rules (pyproject.toml), and what is a reader's to leave out."""
READS_FILES = {"schemas/index.md"}
"""Pages whose code goes on with what a command printed."""


@pytest.mark.slow
def test_the_code_of_every_page_has_types(tmp_path):
    names: dict[str, str] = {}
    for page in PAGES:
        body = "\n".join(block.body for block in blocks(page) if block.kind == "python")
        if body and short(page) not in SKETCHES | READS_FILES:
            file = short(page).removesuffix(".md").replace("/", "_").replace("-", "_") + ".py"
            (tmp_path / file).write_text(body, encoding="utf-8")
            names[file] = short(page)
    assert len(names) > 10, DOCS
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(RULES), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    assert told["summary"]["filesAnalyzed"] == len(names)
    wrong = [
        f"{names[Path(each['file']).name]}: {each['message'].splitlines()[0]}"
        for each in told["generalDiagnostics"]
        if each["severity"] == "error"
    ]
    assert wrong == []
