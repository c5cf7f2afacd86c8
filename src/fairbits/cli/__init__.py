"""The command line: the only place that prints."""

from fairbits.cli.app import main

__all__ = ["main"]
