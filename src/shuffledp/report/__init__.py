"""Renderers of guarantees and releases: JSON for programs, tables for a terminal, and a self-contained page."""
