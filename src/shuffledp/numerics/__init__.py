"""Numbers with counted errors. Knows nothing of privacy."""
