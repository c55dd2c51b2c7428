"""Audits: attacks that give lower bounds on epsilon, for a randomizer or for a whole shuffled collection."""

from __future__ import annotations

from shuffledp.audit.pipeline import audit_pipeline
from shuffledp.audit.randomizer import audit_randomizer
from shuffledp.audit.result import AuditResult

__all__ = ["AuditResult", "audit_pipeline", "audit_randomizer"]
