"""What all command lines share: typed options, output files and tables, and the state that a failed command leaves."""
