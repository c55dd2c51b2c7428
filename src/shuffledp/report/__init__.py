"""Guarantees and releases for readers: JSON for programs, tables for a terminal, one page for everybody."""
