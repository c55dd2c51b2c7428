"""What a privacy profile is, its inverse, its knots, its rounds, and its exchange with other libraries."""
