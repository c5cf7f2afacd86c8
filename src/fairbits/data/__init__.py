"""The built-in subjects: their tables, where these come from and how they are coded.

Nothing is read, written or downloaded by importing this package.
"""

from fairbits.data.registry import BUILT_IN, BuiltIn, built_in, load_stored, load_table
from fairbits.data.sources import add, available, forget

__all__ = ["BUILT_IN", "BuiltIn", "add", "available", "built_in", "forget", "load_stored", "load_table"]
