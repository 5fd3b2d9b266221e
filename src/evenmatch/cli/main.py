"""The command line's entry."""


def main() -> None:
    """Nothing yet."""
