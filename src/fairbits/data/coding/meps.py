"""MEPS (Medical Expenditure Panel Survey, AHRQ): does a person need care ten times a year or more?

Two subjects share this file: panel 19 in 2015 (public-use file HC-181) and panel 21 in 2016 (HC-192). Every one-hot
group of the published table is one category here: 41 attributes for people, 137 inputs for the network.

AHRQ's own MEPS files (SAS transport, .ssp, zipped or not) to the rows and columns that ``meps.code`` takes.

The selection follows the published one for these two panels: one panel of the year's full-year file, the variables
of its last round, no row with an unknown answer, race 1 for Whites who are not Hispanic, and as label whether office,
outpatient and emergency visits, nights in hospital and days of home care add up to ten.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import (
    OWN_DECADE,
    bin_labels,
    equal_bins,
    finish,
    floats,
    listed,
    need_columns,
    read_text,
    rules,
    whole_bin_labels,
)
from fairbits.domain import Category, Doubles, Integer, Integers, Schema, Table
from fairbits.errors import TableError
from fairbits.models import needed

_ADULTS = ((-1, "not asked"), (1, "yes"), (2, "no"))
_HEALTH = ((-1, "not asked"), (1, "excellent"), (2, "very good"), (3, "good"), (4, "fair"), (5, "poor"))

#: Categories in the order of the network's inputs: name, raw column, and each raw code in the codebook's words.
CATEGORIES: tuple[tuple[str, str, tuple[tuple[int, str], ...]], ...] = (
    ("region", "REGION", ((1, "Northeast"), (2, "Midwest"), (3, "South"), (4, "West"))),
    (
        "marital_status",
        "MARRY",
        (
            (1, "married"),
            (2, "widowed"),
            (3, "divorced"),
            (4, "separated"),
            (5, "never married"),
            (6, "under 16"),
            (7, "married in this round"),
            (8, "widowed in this round"),
            (9, "divorced in this round"),
            (10, "separated in this round"),
        ),
    ),
    ("student", "FTSTU", ((-1, "not asked"), (1, "full-time"), (2, "part-time"), (3, "no student"))),
    ("active_duty", "ACTDTY", ((1, "yes"), (2, "no"), (3, "under 16"), (4, "over 59"))),
    ("honourable_discharge", "HONRDC", ((1, "yes"), (2, "no"), (3, "16 or younger"), (4, "now on active duty"))),
    ("perceived_health", "RTHLTH", _HEALTH),
    ("perceived_mental_health", "MNHLTH", _HEALTH),
    ("high_blood_pressure", "HIBPDX", _ADULTS),
    ("coronary_heart_disease", "CHDDX", _ADULTS),
    ("angina", "ANGIDX", _ADULTS),
    ("heart_attack", "MIDX", _ADULTS),
    ("other_heart_disease", "OHRTDX", _ADULTS),
    ("stroke", "STRKDX", _ADULTS),
    ("emphysema", "EMPHDX", _ADULTS),
    ("chronic_bronchitis", "CHBRON", _ADULTS),
    ("high_cholesterol", "CHOLDX", _ADULTS),
    ("cancer", "CANCERDX", _ADULTS),
    ("diabetes", "DIABDX", _ADULTS),
    ("joint_pain", "JTPAIN", _ADULTS),
    ("arthritis", "ARTHDX", _ADULTS),
    (
        "arthritis_type",
        "ARTHTYPE",
        ((-1, "not asked"), (1, "rheumatoid arthritis"), (2, "osteoarthritis"), (3, "not specified")),
    ),
    ("asthma", "ASTHDX", ((1, "yes"), (2, "no"))),
    ("attention_deficit", "ADHDADDX", _ADULTS),
    ("pregnant", "PREGNT", _ADULTS),
    ("walking_limitation", "WLKLIM", _ADULTS),
    ("activity_limitation", "ACTLIM", _ADULTS),
    ("social_limitation", "SOCLIM", _ADULTS),
    ("cognitive_limitation", "COGLIM", _ADULTS),
    ("difficulty_hearing", "DFHEAR42", _ADULTS),
    ("difficulty_seeing", "DFSEE42", _ADULTS),
    ("smoker", "ADSMOK42", _ADULTS),
    ("depression_score", "PHQ242", ((-1, "not asked"), *((n, str(n)) for n in range(7)))),
    (
        "employment",
        "EMPST",
        (
            (-1, "not asked"),
            (1, "employed"),
            (2, "job to return to"),
            (3, "job during the period"),
            (4, "not employed"),
        ),
    ),
    (
        "income",
        "POVCAT",
        ((1, "poor or negative"), (2, "near poor"), (3, "low"), (4, "middle"), (5, "high")),
    ),
    ("insurance", "INSCOV", ((1, "any private"), (2, "public only"), (3, "uninsured"))),
)
#: Kessler score: −9 not ascertained, −1 inapplicable, then 0 to 24; codes 0 to 26.
DISTRESS = (-9, -1, *range(25))
RAW_COLUMNS = ("AGE", "race", "PCS42", "MCS42", "K6SUM42", "sex", *(column for _, column, _ in CATEGORIES))
#: What the table for development calls the label.
UTILISATION = "Probability"


@dataclass(frozen=True, slots=True)
class Year:
    """What differs between the two subjects."""

    panel: int
    suffix: str
    file: str
    rows: int
    physical: tuple[float, float]
    mental: tuple[float, float]

    @property
    def schema(self) -> Schema:
        """Binned scores have the range of the year's own rows, so the labels differ a little."""
        return SCHEMAS[self.suffix]


#: The ends of the two scores are those of the selected rows (−9 and −1 say that there is no score).
YEARS = {
    "meps15": Year(19, "15", "h181", 15_830, (-9.0, 72.07), (-9.0, 75.51)),
    "meps16": Year(21, "16", "h192", 15_675, (-9.0, 70.51), (-9.0, 75.64)),
}


def _schema(year: Year) -> Schema:
    categories = [Category(name=name, labels=tuple(label for _, label in words)) for name, _, words in CATEGORIES]
    # One input each, as in the published table; that is why they are integers and not categories.
    sex = Integer(name="sex", low=0, high=1, labels=("Male", "Female"), protected=True)
    attributes = (
        Integer(name="age", low=1, high=9, labels=whole_bin_labels(0, 85, 9), protected=True),
        Integer(name="race", low=0, high=1, labels=("not White", "non-Hispanic White"), protected=True),
        Integer(name="physical_score", low=1, high=10, labels=bin_labels(*year.physical, 10)),
        Integer(name="mental_score", low=1, high=10, labels=bin_labels(*year.mental, 10)),
        Integer(
            name="distress_score",
            low=0,
            high=26,
            labels=("not ascertained", "not asked", *(str(n) for n in range(25))),
        ),
        categories[0],
        sex,
        *categories[1:],
    )
    return Schema(
        attributes=attributes,
        target="utilisation",
        classes=("fewer than 10 visits", "10 visits or more"),
        plausible=rules(
            OWN_DECADE,
            'pregnant != "not asked" -> sex = "Female"',
            'marital_status = "under 16" -> age <= 2',
            'marital_status in {"married", "divorced", "separated", "married in this round"} -> age >= 3',
            'marital_status = "widowed" -> age >= 5',
            'student in {"full-time", "no student"} -> age in {2, 3}',
        ),
    )


SCHEMAS = {year.suffix: _schema(year) for year in YEARS.values()}

Numbers = Mapping[str, Doubles]


def read_csv(path: Path) -> Numbers:
    """The selected rows as text: raw codes under the columns' short names, sex 1 for women, the label last."""
    raw = read_text(path)
    need_columns(raw, (*RAW_COLUMNS, UTILISATION), "meps")
    return {name: floats(raw, name) for name in (*RAW_COLUMNS, UTILISATION)}


def code(numbers: Numbers, year: Year) -> Table:
    """The selected rows in the paper's coding: bins for age and the two scores, positions for everything else."""
    region, *others = (_position(numbers, column, [raw for raw, _ in words]) for _, column, words in CATEGORIES)
    columns = [
        equal_bins(numbers["AGE"], 0, 85, 9),
        numbers["race"].astype(np.int64),
        equal_bins(numbers["PCS42"], *year.physical, 10),
        equal_bins(numbers["MCS42"], *year.mental, 10),
        _position(numbers, "K6SUM42", DISTRESS),
        region,
        numbers["sex"].astype(np.int64),
        *others,
    ]
    return finish(columns, numbers[UTILISATION].astype(np.int64), year.schema)


def _position(numbers: Numbers, column: str, known: list[int] | tuple[int, ...]) -> Integers:
    values = numbers[column]
    places = np.searchsorted(known, values).clip(0, len(known) - 1)
    strange = np.asarray(known)[places] != values
    if strange.any():
        raise TableError(
            f"column {column!r} holds {values[strange][0]:g}, which the codebook does not list; "
            f"it has: {', '.join(map(str, known))}."
        )
    return places.astype(np.int64)


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
    plain = ("PANEL", "RACEV2X", "HISPANX", "SEX", *SCORES, *ALSO_KNOWN, *(column for _, column, _ in CATEGORIES))
    by_year = {name: f"{name}{year.suffix}" for name in (*BY_YEAR, *VISITS)}
    return {**{name: name for name in plain}, **BY_ROUND, **by_year}


def read_official(path: Path, year: Year) -> Numbers:
    """The selected people of an official file."""
    names = columns_of(year)
    table = _read_xport(path, year, list(names.values()))
    return select({ours: table[theirs] for ours, theirs in names.items()}, year)


def select(table: Numbers, year: Year) -> Numbers:
    """The people of one panel without unknown answers; race, sex and label recoded."""
    categories = [column for _, column, _ in CATEGORIES]
    lowest = {**dict.fromkeys((*categories, *ALSO_KNOWN), -1), **dict.fromkeys(ALWAYS_KNOWN, 0)}
    keep = np.all([table["PANEL"] == year.panel, *(table[name] >= low for name, low in lowest.items())], axis=0)
    kept = {name: column[keep] for name, column in table.items()}
    visits = np.sum([kept[name] for name in VISITS], axis=0)
    return {name: kept[name] for name in ("AGE", *SCORES, *categories)} | {
        "race": ((kept["HISPANX"] == 2) & (kept["RACEV2X"] == 1)).astype(np.float64),
        "sex": kept["SEX"] - 1,
        UTILISATION: (visits >= 10).astype(np.float64),
    }


def _read_xport(path: Path, year: Year, wanted: list[str]) -> dict[str, Doubles]:
    pd = needed("pandas", "meps", "reading AHRQ's SAS transport files")
    packed = "zip" if zipfile.is_zipfile(path) else None
    try:
        with pd.read_sas(path, format="xport", chunksize=ROWS_AT_A_TIME, compression=packed) as reader:
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
