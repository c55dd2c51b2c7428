"""The systemd unit, and what the page on systemd says to type; no test starts systemd."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = (ROOT / "deploy" / "shuffledp.service").read_text(encoding="utf-8")
ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    unit = tmp_path / "shuffledp.service"
    unit.write_text(UNIT.replace("/opt/shuffledp/bin/shuffledp", "/bin/true"), encoding="utf-8")
    done = subprocess.run([str(ANALYZE), "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_operator_s_commands_run_as_the_unit_s_user_in_the_folder_of_the_store():
    """They ran in the caller's folder, which that user cannot write, and often cannot enter."""
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE))
    page = (ROOT / "docs" / "collection" / "systemd.md").read_text(encoding="utf-8")
    command = re.search(r"^systemd-run (.*)$", page, re.MULTILINE)
    assert command is not None
    store = re.search(r"--store (\S+)", settings["ExecStart"])
    assert store is not None
    folder = str(Path(store[1]).parent)
    assert f"--working-directory={folder} " in command[1]
    assert folder == f"/var/lib/{settings['StateDirectory']}"
    given = dict(re.findall(r"-p (\w+)=(\S+)", command[1]))
    assert given == {"User": "shuffledp"} | {name: settings[name] for name in ("DynamicUser", "StateDirectory")}
    assert settings["ExecStart"].split()[0] in command[1]
