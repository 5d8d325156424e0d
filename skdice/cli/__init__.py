"""The command `skdice`."""

import os


def main() -> None:
    """Entry point."""
    # Threads that wait for each other give their core to other work, such as a second command.
    # OpenMP reads it as torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from skdice.cli.app import app

    app()
