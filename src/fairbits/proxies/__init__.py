"""What a score tells about protected attributes that the model never sees: bits, columns, matched people."""

from fairbits.proxies.bits import ScoreBits, chained_bits, score_bits
from fairbits.proxies.matched import Matching, matched_people
from fairbits.proxies.usable import UsableBits, usable_bits

__all__ = [
    "Matching",
    "ScoreBits",
    "UsableBits",
    "chained_bits",
    "matched_people",
    "score_bits",
    "usable_bits",
]
