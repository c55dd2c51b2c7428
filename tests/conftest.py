"""Profiles of the property tests."""

from __future__ import annotations

from hypothesis import settings

# `make test` decides whether a change may land: the same examples every time. `make test-all` draws fresh ones.
settings.register_profile("repeatable", derandomize=True)
