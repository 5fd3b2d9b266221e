"""python -m evenmatch: the command line."""

from evenmatch.cli.main import main

if __name__ == "__main__":
    main()
