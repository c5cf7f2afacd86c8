"""AHRQ's own MEPS files (SAS transport, .ssp, zipped or not) to the rows and columns that ``meps.code`` takes.

The selection follows the published one for these two panels: one panel of the year's full-year file, the variables
of its last round, no row with an unknown answer, race 1 for Whites who are not Hispanic, and as label whether office,
outpatient and emergency visits, nights in hospital and days of home care add up to ten.
"""

from __future__ import annotations

import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from fairbits.data.coding.meps import CATEGORIES, UTILISATION, Numbers, Year
from fairbits.data.coding.raw import Floats, listed
from fairbits.errors import MissingDependencyError, TableError

#: Variables that the file names by round; ours have the name without it.
BY_ROUND = {
    "FTSTU": "FTSTU53X",
    "MARRY": "MARRY53X",
    "AGE": "AGE53X",
    **{
        name: f"{name}53"
        for name in listed("ACTDTY,HONRDC,RTHLTH,MNHLTH,CHBRON,JTPAIN,PREGNT,WLKLIM,ACTLIM,SOCLIM,COGLIM,EMPST,REGION")
    },
}
BY_YEAR = ("POVCAT", "INSCOV")
VISITS = ("OBTOTV", "OPTOTV", "ERTOT", "IPNGTD", "HHTOTD")
#: Where even "inapplicable" (−1) drops a row; elsewhere only answers below −1 (refused, unknown, not ascertained) do.
ALWAYS_KNOWN = ("REGION", "AGE", "MARRY", "ASTHDX")
#: Not used by the model, but an unknown answer drops the row.
ALSO_KNOWN = ("EDUCYR", "HIDEG")
ROWS_AT_A_TIME = 5_000
SCORES = ("PCS42", "MCS42", "K6SUM42")


def columns_of(year: Year) -> dict[str, str]:
    """Names of the variables in the file of a year, by our names."""
    plain = (column for _, column, _ in CATEGORIES)
    names = {name: name for name in ("PANEL", "RACEV2X", "HISPANX", "SEX", *SCORES, *ALSO_KNOWN, *plain)}
    names |= BY_ROUND
    names |= {name: f"{name}{year.suffix}" for name in (*BY_YEAR, *VISITS)}
    return names


def read_official(path: Path, year: Year) -> Numbers:
    """The selected people of an official file."""
    names = columns_of(year)
    table = _read_xport(path, year, list(names.values()))
    return select({ours: table[theirs] for ours, theirs in names.items()}, year)


def select(table: Numbers, year: Year) -> Numbers:
    """The people of one panel without unknown answers; race, sex and label recoded."""
    categories = [column for _, column, _ in CATEGORIES]
    keep = table["PANEL"] == year.panel
    for name in ALWAYS_KNOWN:
        keep &= table[name] >= 0
    for name in (*categories, *ALSO_KNOWN):
        keep &= table[name] >= -1
    kept = {name: column[keep] for name, column in table.items()}
    visits = np.sum([kept[name] for name in VISITS], axis=0)
    return {name: kept[name] for name in ("AGE", *SCORES, *categories)} | {
        "race": ((kept["HISPANX"] == 2) & (kept["RACEV2X"] == 1)).astype(np.float64),
        "sex": kept["SEX"] - 1,
        UTILISATION: (visits >= 10).astype(np.float64),
    }


def _read_xport(path: Path, year: Year, wanted: list[str]) -> dict[str, Floats]:
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("pandas", "meps", "reading AHRQ's SAS transport files") from None
    try:
        with ExitStack() as stack:
            # pandas' stubs do not know that this reader tells its columns.
            reader: Any = pd.read_sas(_open(path, stack), format="xport", chunksize=ROWS_AT_A_TIME)
            missing = [name for name in wanted if name not in reader.columns]
            # A file has some 1,800 variables; only the wanted ones of each piece are kept in memory.
            pieces = [] if missing else [piece[wanted].to_numpy(dtype=np.float64) for piece in reader]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise TableError(
            f"cannot read {path} as a SAS transport file ({error}); give {year.file}ssp.zip as AHRQ publishes it."
        ) from error
    if missing:
        raise TableError(
            f"{path} lacks {len(missing)} of the {len(wanted)} variables that are needed "
            f"({', '.join(missing[:8])}{', …' if len(missing) > 8 else ''}); "
            f"this panel is in {year.file}ssp.zip (AHRQ HC-{year.file[1:]})."
        )
    return dict(zip(wanted, np.concatenate(pieces).T, strict=True))


def _open(path: Path, stack: ExitStack) -> IO[bytes]:
    """The transport file itself, out of its zip file when it is in one."""
    if not zipfile.is_zipfile(path):
        return stack.enter_context(path.open("rb"))
    archive = stack.enter_context(zipfile.ZipFile(path))
    inside = [name for name in archive.namelist() if name.lower().endswith((".ssp", ".xpt"))]
    if len(inside) != 1:
        raise ValueError(f"it holds {len(inside)} transport files, not one")
    return stack.enter_context(archive.open(inside[0]))
