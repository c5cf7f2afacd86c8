"""What can be proved about a model, and for how many people: exact, proved or statistical statements."""

from fairbits.certify.files import certify_run, read_statements
from fairbits.certify.run import Certificate, CertifyOptions, certify_subject
from fairbits.certify.statement import Statement

__all__ = ["Certificate", "CertifyOptions", "Statement", "certify_run", "certify_subject", "read_statements"]
