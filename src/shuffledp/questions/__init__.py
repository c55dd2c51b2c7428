"""Questions about records: the randomizers that answer each, the tally of reports, and the estimate from the tally."""
