"""The count theorem (docs/theorems/count.md, count-exact.md): bound, covers, channels, attacks."""
