"""`fairbits data`: the built-in subjects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fairbits.cli.options import Json

data_app = typer.Typer(help="The built-in subjects: list, show, export, add and train.", no_args_is_help=True)
