"""The built-in subjects: their tables, where these come from, how they are coded, and the networks trained on them.

Nothing is read, written or downloaded by importing this package.
"""

from fairbits.data.registry import BUILT_IN, BuiltIn, built_in, load_stored, load_table
from fairbits.data.sources import add, available, forget
from fairbits.data.subject import Subject, load_subject, make_subject

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Subject",
    "add",
    "available",
    "built_in",
    "forget",
    "load_stored",
    "load_subject",
    "load_table",
    "make_subject",
]
