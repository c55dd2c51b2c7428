"""From records to a release: reports are randomized and tallied, and an estimate leaves together with its guarantee."""
