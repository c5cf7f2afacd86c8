from .files import export as export
from .place import Export as Export
from .place import remove_old as remove_old
