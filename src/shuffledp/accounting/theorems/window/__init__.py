"""Windows of outputs (docs/theorems/window.md): which to count, and what their count proves."""
