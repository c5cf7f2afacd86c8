"""The front door in Python."""

from fairbits.audit.audit import Audit

__all__ = ["Audit"]
