"""The common blanket theorem (docs/theorems/blanket.md): pairs of inputs, added noise, and the bound."""
