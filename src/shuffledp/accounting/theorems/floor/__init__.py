"""The floor of dummies (docs/theorems/floor.md): the bound, and the pair of laws it is the divergence of."""
