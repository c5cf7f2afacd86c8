from .files import certify_options as certify_options
from .files import certify_run as certify_run
from .files import read_statements as read_statements
from .options import Certificate as Certificate
from .options import CertifyOptions as CertifyOptions
from .run import certify_subject as certify_subject
from .statement import Population as Population
from .statement import Statement as Statement
