"""The experiments: every strategy on equal terms, and the paper's tables made anew."""

from fairbits.paper.compare import Comparison, Contest, compare

__all__ = ["Comparison", "Contest", "compare"]
