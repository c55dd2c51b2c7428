"""Audits: attacks that bind epsilon from below, on a randomizer or on a whole shuffled collection."""

from __future__ import annotations

from shuffledp.audit.pipeline import audit_pipeline
from shuffledp.audit.randomizer import audit_randomizer
from shuffledp.audit.result import AuditResult

__all__ = ["AuditResult", "audit_pipeline", "audit_randomizer"]
