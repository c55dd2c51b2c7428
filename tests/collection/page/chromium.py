"""Where node and chromium are, and why a test that needs them is left out."""

from __future__ import annotations

import shutil
from pathlib import Path

from shuffledp.cli.demo.clients import chromium_path

HERE = Path(__file__).parent
NODE = shutil.which("node") or ""
CHROMIUM = chromium_path() or ""
UNTIL = """
(async () => {
  const until = async (find) => {
    for (;;) {
      const found = find();
      if (found) return found;
      await new Promise((go) => setTimeout(go, 10));
    }
  };
  const at = (selector) => document.querySelector(selector);
"""
"""Beginning of a script in a page: `until` waits for something, `at` finds an element. The script ends with })()."""


def no_node() -> str:
    """Say what is missing for the tests in node, if anything is."""
    return "" if NODE else "node is not installed"


def no_browser() -> str:
    """Say what is missing for the tests in a browser, if anything is."""
    if no_node() or not CHROMIUM:
        return no_node() or "chromium is not installed"
    return (
        "" if (HERE / "node_modules").is_dir() else "run `make test-browser`: it installs playwright-core and axe-core"
    )
