"""The command `skdice`."""


def main() -> None:
    """Entry point."""
    try:
        from skdice.cli.app import app
    except KeyboardInterrupt:  # the import takes seconds
        raise SystemExit(130) from None
    app()
