"""The built-in subjects' tables: what each is about, whose it is, and how to get its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairbits.data import sources, standin, stored
from fairbits.data.coding import compas, diabetes, meps
from fairbits.data.coding.shipped import BANK, CENSUS, DEFAULT, GERMAN, HEART, STUDENTS
from fairbits.data.stored import Stored
from fairbits.domain import Encoding, Schema, Table
from fairbits.errors import OptionError, choose_from

TABLES = Path(__file__).parent / "tables"
CC_BY = "CC BY 4.0"
#: The stand-ins are always made from this seed, so that everybody has the same synthetic people.
STAND_IN_SEED = 0


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """What there is to know about a built-in subject's table before it is loaded.

    The score of a built-in subject is the probability of label 1 throughout, as in the published experiments, even
    where that is not the outcome people hope for (default, disease, a new arrest).
    """

    name: str
    title: str
    description: str
    source: str
    licence: str
    schema: Schema
    rows: int
    ships: bool
    load: Callable[[bool], Stored]
    one_hot: bool = False
    own_test_rows: bool = False  # the publisher's own held-out rows: they are not among the people measured
    synthetic: bool = False
    stand_in: str | None = None
    same_data_as: str | None = None

    @property
    def needs(self) -> str:
        """The name under which its data are found or added."""
        return self.same_data_as or self.name

    def encoding(self) -> Encoding:
        """What the benchmark network takes."""
        return Encoding.one_hot(self.schema) if self.one_hot else Encoding.identity(self.schema)

    @property
    def favourable(self) -> str | None:
        """The scored class, in words."""
        return self.schema.favourable


def load_table(name: str, *, network: bool = True) -> Table:
    """The coded table of a built-in subject, with labels and held-out rows; ``network``: OpenML may be asked."""
    return load_stored(name, network=network).table


def load_stored(name: str, *, network: bool = True) -> Stored:
    """The coded table of a built-in subject, with a description of where its rows come from."""
    return built_in(name).load(network)


def built_in(name: str) -> BuiltIn:
    """The record of a built-in subject."""
    if name not in BUILT_IN:
        raise OptionError(f"nothing built in is called {name!r}; {choose_from(name, BUILT_IN)}")
    return BUILT_IN[name]


def _packaged(name: str, schema: Schema) -> Callable[[bool], Stored]:
    return lambda _network: stored.read(TABLES / f"{name}.parquet", schema)


def _paper_german(_network: bool) -> Stored:
    path = TABLES / "german.parquet"
    place = stored.read_extra(path, "paper_order")
    chosen = np.argsort(place, kind="stable")[np.sort(place) >= 0]
    found = stored.read(path, GERMAN)
    return replace(found, table=replace(found.table.rows(chosen), numbers=None))


def _found(name: str) -> Callable[[bool], Stored]:
    return lambda network: sources.find(name, network=network)


def _compas_without_leaks(network: bool) -> Stored:
    found = sources.find("compas", network=network)
    return replace(found, table=replace(found.table, codes=np.ascontiguousarray(found.table.codes[:, compas.KEPT])))


def _synthetic(name: str) -> Callable[[bool], Stored]:
    year = meps.YEARS[name]

    def load(_network: bool) -> Stored:
        model = standin.from_json((TABLES / f"{name}-synthetic.json").read_text(encoding="utf-8"))
        table = standin.sample(model, year.schema, year.rows, seed=STAND_IN_SEED)
        origin = f"synthetic: made by fairbits from a model fitted to {name}; not real people"
        return Stored.split(f"{name}-synthetic", table, origin)

    return load


def _uci(number: int, name: str, doi: str) -> str:
    return f"UCI Machine Learning Repository {number}, {name}, https://doi.org/{doi}"


def _meps_pair(name: str, file: str, panel: int, fiscal: int) -> tuple[BuiltIn, BuiltIn]:
    year = meps.YEARS[name]
    # The table that the stand-in of 2015 was fitted to counts Hispanic Whites as White; AHRQ's own rule does not.
    note = " Here 'non-Hispanic White' includes Hispanic Whites." if name == "meps15" else ""
    real = BuiltIn(
        name=name,
        title=f"Medical expenditure {fiscal}",
        description=f"Ten or more medical visits in {fiscal}? Panel {panel} of the US Medical Expenditure Survey.",
        source=f"Agency for Healthcare Research and Quality, MEPS public-use file {file}",
        licence="AHRQ data use agreement: statistical analysis only, no re-identification; not shipped",
        schema=year.schema,
        rows=year.rows,
        ships=False,
        load=_found(name),
        one_hot=True,
        stand_in=f"{name}-synthetic",
    )
    made = BuiltIn(
        name=f"{name}-synthetic",
        title=f"Medical expenditure {fiscal}, synthetic",
        description=f"Made-up people from a small model fitted to {name}: for trying out, not for findings.{note}",
        source=f"Generated by fairbits (fairbits.data.standin) from a model fitted to MEPS {file}",
        licence="Apache-2.0 (generated)",
        schema=year.schema,
        rows=year.rows,
        ships=True,
        load=_synthetic(name),
        one_hot=True,
        synthetic=True,
    )
    return real, made


_ALL = (
    BuiltIn(
        name="census",
        title="Census income",
        description="Does a person earn more than 50,000 dollars a year? US census of 1994; UCI's own held-out rows.",
        source=_uci(2, "Adult", "10.24432/C5XW20"),
        licence=CC_BY,
        schema=CENSUS,
        rows=48_842,
        ships=True,
        load=_packaged("census", CENSUS),
        own_test_rows=True,
    ),
    BuiltIn(
        name="compas",
        title="COMPAS",
        description="Was a person arrested again within two years? With two columns that leak the answer, as in the "
        "paper (is_recid, is_violent_recid); see compas-noleak.",
        source="ProPublica, compas-analysis, compas-scores-two-years.csv",
        licence="none stated; not shipped",
        schema=compas.SCHEMA,
        rows=7_214,
        ships=False,
        load=_found("compas"),
    ),
    BuiltIn(
        name="compas-noleak",
        title="COMPAS without the leaking columns",
        description="The same people without is_recid and is_violent_recid, which were written down after the fact.",
        source="ProPublica, compas-analysis, compas-scores-two-years.csv",
        licence="none stated; not shipped",
        schema=compas.NO_LEAK,
        rows=7_214,
        ships=False,
        load=_compas_without_leaks,
        same_data_as="compas",
    ),
    BuiltIn(
        name="german",
        title="German credit",
        description="Is a person a good or a bad credit risk? All 1,000 rows; see german-600.",
        source=_uci(144, "Statlog (German Credit Data)", "10.24432/C5NC77"),
        licence=CC_BY,
        schema=GERMAN,
        rows=1_000,
        ships=True,
        load=_packaged("german", GERMAN),
    ),
    BuiltIn(
        name="german-600",
        title="German credit, the paper's rows",
        description="The 600 rows of the published experiments, in their order: all 300 bad risks and 300 good ones.",
        source=_uci(144, "Statlog (German Credit Data)", "10.24432/C5NC77"),
        licence=CC_BY,
        schema=GERMAN,
        rows=600,
        ships=True,
        load=_paper_german,
    ),
    BuiltIn(
        name="default",
        title="Credit card default",
        description="Will a person fail to pay the credit card bill next month? Taiwan, 2005.",
        source=_uci(350, "Default of Credit Card Clients", "10.24432/C55S3H"),
        licence=CC_BY,
        schema=DEFAULT,
        rows=30_000,
        ships=True,
        load=_packaged("default", DEFAULT),
    ),
    BuiltIn(
        name="heart",
        title="Heart disease",
        description="Does a person have heart disease of grade 2 or more? Cleveland; grade 1 counts as none, as in the "
        "paper's files.",
        source=_uci(45, "Heart Disease", "10.24432/C52P4X"),
        licence=CC_BY,
        schema=HEART,
        rows=297,
        ships=True,
        load=_packaged("heart", HEART),
    ),
    BuiltIn(
        name="bank",
        title="Bank marketing",
        description="Will a person subscribe to a term deposit? A Portuguese bank's phone campaigns, 2008 to 2010.",
        source=_uci(222, "Bank Marketing", "10.24432/C5K306"),
        licence=CC_BY,
        schema=BANK,
        rows=45_211,
        ships=True,
        load=_packaged("bank", BANK),
    ),
    BuiltIn(
        name="diabetes",
        title="Diabetes (Pima)",
        description="Is a test for diabetes positive? Women of Pima heritage, 21 and older.",
        source="National Institute of Diabetes and Digestive and Kidney Diseases; OpenML data set 37",
        licence="unclear (withdrawn from UCI); not shipped",
        schema=diabetes.SCHEMA,
        rows=768,
        ships=False,
        load=_found("diabetes"),
    ),
    BuiltIn(
        name="students",
        title="Student performance",
        description="Does a pupil pass the year? Two schools in Portugal, two courses; some pupils are in both.",
        source=_uci(320, "Student Performance", "10.24432/C5TG7T"),
        licence=CC_BY,
        schema=STUDENTS,
        rows=1_044,
        ships=True,
        load=_packaged("students", STUDENTS),
    ),
    *_meps_pair("meps15", "HC-181", 19, 2015),
    *_meps_pair("meps16", "HC-192", 21, 2016),
)
BUILT_IN: dict[str, BuiltIn] = {subject.name: subject for subject in _ALL}
