"""The version, for modules that `skdice` itself imports."""

__version__ = "0.1.0"
