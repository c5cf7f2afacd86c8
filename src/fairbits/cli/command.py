"""How a command reads its words: an option that takes one value may be given once."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

from fairbits.errors import OptionError


class StrictCommand(TyperCommand):
    """A command that refuses an option given twice: of `--protected sex --protected race` only race would be kept."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look for options that are there more than once before the words are read."""
        seen = set()
        for option in self.make_parser(ctx).parse_args(args=list(args))[2]:
            if not isinstance(option, TyperOption) or option.multiple or option.is_flag:
                continue
            if option.name in seen:
                raise OptionError(
                    f"{option.opts[0]} is given more than once; give it once, the names of a list with commas."
                )
            seen.add(option.name)
        return super().parse_args(ctx, args)
