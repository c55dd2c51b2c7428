"""`python -m shuffledp`: the command line, for whom its folder of programs is not on the path."""

from shuffledp.cli import main

if __name__ == "__main__":
    main()
