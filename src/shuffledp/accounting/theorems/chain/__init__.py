"""The chain theorem (docs/theorems/chain.md): bound, links, moments."""
