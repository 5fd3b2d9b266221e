"""Run the command line with `python -m evenmatch`."""

from evenmatch.cli.main import main

if __name__ == "__main__":
    main()
