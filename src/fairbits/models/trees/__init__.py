"""Tree ensembles of any library as plain arrays."""

from fairbits.models.trees.adapter import from_booster, is_booster
from fairbits.models.trees.ensemble import Ensemble, Tree, TreeModel

__all__ = ["Ensemble", "Tree", "TreeModel", "from_booster", "is_booster"]
