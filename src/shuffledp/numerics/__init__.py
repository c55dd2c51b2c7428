"""Numerical routines that return results with proven error bounds; nothing here depends on privacy definitions."""
