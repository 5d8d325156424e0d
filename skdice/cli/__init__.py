"""The command `skdice`."""


def main() -> None:
    """Entry point."""
    from skdice.cli.app import app

    app()
