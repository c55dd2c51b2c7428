"""One theorem per file, named by its key in `shuffledp.bounds` with _ for -; docs/theorems/<key>.md is its page."""
