"""Set-up compiles kernels before most packages are there: the module that does so imports few."""

import re
import subprocess
import sys
from pathlib import Path


def test_compiling_ahead_needs_what_set_up_has_fetched():
    home = Path(__file__).parents[2]
    fetched = re.search(r'KERNELS = .*"\(([^)]*)\)', (home / "Makefile").read_text()).group(1).split("|")
    code = (
        "import sys; before = set(sys.modules); import fairbits.engine.__main__; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    needed = {
        "duckdb",
        "pyarrow",
        "sklearn",
        "matplotlib",
        "pandas",
        "rich",
        "click",
        "jinja2",
        "filelock",
        "platformdirs",
        "tomlkit",
    }
    assert not needed & set(found)
    assert {"numpy", "scipy", "numba"} <= set(fetched)
