"""From records to a release: a question is asked, reports are randomized and counted, and an estimate is released."""
