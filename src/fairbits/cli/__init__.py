"""The command line: the only place that prints. Nothing is imported here, so that Ctrl-C is answered from the start."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 fine, 1 verdict failed, 2 wrong use, 3 failure, 130 interrupted."""
    import gc

    from fairbits.cli.signals import interruptible

    gc.set_threshold(50_000)  # a start makes many objects and drops few: looking for those takes a tenth of it
    with interruptible():
        from fairbits.cli.app import run

        run()
