from .files import Export as Export
from .files import export as export
from .files import remove_old as remove_old
