"""How a command reads its words: an option that takes one value may be given once."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

from fairbits.errors import OptionError


def _note_all(context: Any, _: Any, wanted: bool) -> None:
    context.meta["fairbits.all"] = wanted


class StrictCommand(TyperCommand):
    """A command that refuses an option given twice: of `--protected sex --protected race` only race would be kept.

    One that prints figures (it has ``--json``) also takes ``--all``.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        if any(one.name == "as_json" for one in self.params):
            self.params.append(
                TyperOption(
                    param_decls=["--all"],
                    is_flag=True,
                    expose_value=False,
                    callback=_note_all,
                    help="Print everything, not the first 25 lines.",
                )
            )

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
