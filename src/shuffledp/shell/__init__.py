"""What the fronts of all products share: options as typed, files and tables as written, what a failure leaves."""
