"""The command line: the only place that prints. Nothing is imported here, so that Ctrl-C is answered from the start."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 fine, 1 verdict failed, 2 wrong use, 3 failure, 130 interrupted."""
    from fairbits.cli.signals import interruptible

    with interruptible():
        from fairbits.cli.app import run

        run()
