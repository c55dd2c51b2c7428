"""What the page's tests in node share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.collection.page.chromium import no_node
from tests.collection.page.nodejs import lay_out, run


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a script among the page's modules; see `nodejs.run`."""
    if no_node():
        pytest.skip(no_node())
    folder: Path = lay_out(tmp_path_factory.mktemp("page"))
    return lambda script, given=None: run(folder, script, given)
