"""Tree ensembles of any library as plain arrays."""

from fairbits.models.trees.adapter import from_booster, is_booster, read_booster, tree_loaded
from fairbits.models.trees.ensemble import Ensemble
from fairbits.models.trees.model import TreeModel
from fairbits.models.trees.tree import Tree

__all__ = ["Ensemble", "Tree", "TreeModel", "from_booster", "is_booster", "read_booster", "tree_loaded"]
