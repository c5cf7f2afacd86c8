"""What a person may be: attributes, schema, twins, encoding."""

from fairbits.domain.attribute import Attribute
from fairbits.domain.decoding import Decoder
from fairbits.domain.encoding import Encoding, FirstLayer, Lookup, Numeric, Unseen
from fairbits.domain.rules import Rule
from fairbits.domain.schema import Schema
from fairbits.domain.table import Table
from fairbits.domain.twins import Twins

__all__ = [
    "Attribute",
    "Decoder",
    "Encoding",
    "FirstLayer",
    "Lookup",
    "Numeric",
    "Rule",
    "Schema",
    "Table",
    "Twins",
    "Unseen",
]
