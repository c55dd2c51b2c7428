"""The clone pair (docs/theorems/clones.md): its profile, and the bound that follows from it."""
