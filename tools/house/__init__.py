"""Does the package keep to its own layout? Checks that no linter of others makes.

`python -m tools.house` fails on a module named after an activity, a class name used twice, an import of what another
package does not export, an export with the name of a sub-module, a public function whose docstring does not name
its parameters, and an exported class whose docstring does not explain its fields. `--list` shows everything, files over
300 lines among it. Settings: `[tool.house]` in pyproject.toml.
"""

from tools.house.checks import CHECKS, check_tree, long_files
from tools.house.tree import Finding, Settings, SourceTree

__all__ = ["CHECKS", "Finding", "Settings", "SourceTree", "check_tree", "long_files"]
