"""Modules that need an extra are collected (their docstrings are tests too) only where it is installed."""

from importlib.util import find_spec

collect_ignore_glob = [
    pattern
    for extra, pattern in (
        ("torch", "src/shuffledp/learning/torch/*"),
        ("flwr", "src/shuffledp/flower/*"),
        ("matplotlib", "src/shuffledp/reproduce/__init__.py"),
    )
    if find_spec(extra) is None
]
