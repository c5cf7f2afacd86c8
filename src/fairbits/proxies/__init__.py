"""What a score tells about protected attributes that the model never sees: bits, columns, matched people."""

from fairbits.proxies.bits import ScoreBits, chained_bits, score_bits
from fairbits.proxies.matched import Matching, matched_people
from fairbits.proxies.study import AttributeStudy, ProxyStudy, study_subject
from fairbits.proxies.usable import Justified, UsableBits, justified_of, usable_bits

__all__ = [
    "AttributeStudy",
    "Justified",
    "Matching",
    "ProxyStudy",
    "ScoreBits",
    "UsableBits",
    "chained_bits",
    "justified_of",
    "matched_people",
    "score_bits",
    "study_subject",
    "usable_bits",
]
