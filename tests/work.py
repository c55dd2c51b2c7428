"""Work counted instead of timed: what a test allows does not depend on the machine, or on what else it does."""

from __future__ import annotations

from typing import Any

import pytest


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """Return a list that gets an entry with each call of `owner.name` from now on."""
    made, original = list[str](), getattr(owner, name)

    def counted(*args: Any, **named: Any) -> Any:
        made.append(name)
        return original(*args, **named)

    monkeypatch.setattr(owner, name, counted)
    return made
