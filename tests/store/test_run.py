"""Reading: the ranking, labels, figures, and filters that try to get out."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairbits import Schema
from fairbits.errors import OptionError
from fairbits.store import Run, RunWriter, time_limit
from tests.conftest import random_people
from tests.store.conftest import MANIFEST, figures, write_run, writing


@pytest.fixture
def run(tmp_path: Path, people_schema: Schema, rng: np.random.Generator) -> Run:
    write_run(tmp_path / "run [1] it's *", people_schema, rng)
    return Run.open(tmp_path / "run [1] it's *")


@pytest.fixture
def odd(tmp_path: Path, odd_schema: Schema, rng: np.random.Generator) -> Run:
    write_run(tmp_path / "odd", odd_schema, rng)
    return Run.open(tmp_path / "odd")


def test_worst_first(run: Run) -> None:
    table = run.cases(labels=False).to_pandas()
    expected = table.sort_values(["k", "span", "evaluation"], ascending=[False, False, True])
    assert table.evaluation.tolist() == expected.evaluation.tolist()
    assert run.cases(top=7)["evaluation"].to_pylist() == table.evaluation.tolist()[:7]
    assert [case.evaluation for case in run.worst(7)] == table.evaluation.tolist()[:7]


def test_labels_are_for_reading(run: Run) -> None:
    codes, words = run.cases(labels=False).to_pylist(), run.cases().to_pylist()
    for code, word, case in zip(codes[:40], words, run.worst(40), strict=False):
        assert word["job"] == run.schema["job"].labels[code["job"]] == case.attributes["job"]
        assert word["worst"] == run.twins.labels[code["low_twin"]] == case.worst
        assert word["best"] == run.twins.labels[code["high_twin"]] == case.best
        assert word["hours"] == code["hours"]
    assert set(run.cases().to_pandas()["job"]) <= set(run.schema["job"].labels)
    assert pl.from_arrow(run.cases(top=5)).height == 5


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("job = 'Tech'", lambda row: row["job"] == "Tech"),
        ("hours * 3 > 200 and hours - 50 > 10", lambda row: row["hours"] > 66),
        ("changed * 30000 > 100000", lambda row: row["changed"] > 3),
        ("flips and k >= 3 -- a comment", lambda row: row["flips"] and row["k"] >= 3),
        ("job in ('Sales', 'Care') or income < 0", lambda row: row["job"] in ("Sales", "Care") or row["income"] < 0),
        ("k = (select max(k) from cases)", lambda row: row["k"] == 6),
        ("K >= 4 AND Origin = 'random'", lambda row: row["k"] >= 4),
    ],
)
def test_filters(run: Run, where: str, keeps) -> None:
    assert run.cases(where=where).to_pylist() == [row for row in run.cases().to_pylist() if keeps(row)]


def test_odd_names_and_labels_survive(odd: Run) -> None:
    all_rows = odd.cases().to_pylist()
    for where, column, value in (
        ("Job = 'O''Neil'", "Job", "O'Neil"),
        ("Job = '\u202eevil'", "Job", "\u202eevil"),
        ("attribute_k_label = 'b'", "attribute_k", "b"),
    ):
        found = odd.cases(where=where).to_pylist()
        assert found == [row for row in all_rows if row[column] == value]
        assert found
    assert odd.cases(where='"x""; DROP TABLE cases.y" >= 0 and attribute_attribute_k <= 0').num_rows == len(odd)
    assert odd.cases(where="attribute_k = 1").to_pylist() == odd.cases(where="attribute_k_label = 'b'").to_pylist()


ATTACKS = [
    "1=1) UNION SELECT * FROM read_csv('/etc/passwd') --",
    "1=1) UNION ALL SELECT * FROM cases WHERE (1=1",
    "k in (SELECT 1 FROM read_text('/etc/passwd'))",
    "(SELECT content FROM read_text('/etc/passwd')) is not null",
    "exists (FROM '/etc/passwd')",
    "exists (FROM read_parquet('{part}'))",
    "exists (FROM stored)",
    "exists (FROM glob('/*'))",
    "exists (FROM duckdb_settings())",
    "exists (SELECT * FROM information_schema.tables)",
    "exists (FROM main.cases)",
    "exists (FROM query('SELECT 1'))",
    "exists (WITH x AS (FROM read_text('/etc/passwd')) FROM x)",
    "exists (FROM cases, read_text('/etc/passwd'))",
    "exists (DESCRIBE cases)",
    "exists (FROM secret)",  # a variable of this module: no look into Python
    "k > 1; COPY cases TO '{out}'",
    "k > 1); COPY cases TO '{out}'; SELECT (1",
    "1=1) ; ATTACH '{out}' AS x; --",
    "1=1) ; INSTALL httpfs; LOAD httpfs; --",
    "1=1) ; SET enable_external_access = true; --",
    "1=1) ; DROP VIEW cases; --",
    "1=1) LIMIT (1",
    "1=1) ORDER BY (k",
    "1=1) GROUP BY (k",
    "1=1",
]
secret = pl.DataFrame({"secret": [1]})


@pytest.mark.parametrize("attack", ATTACKS[:-1])
def test_filters_cannot_get_out(run: Run, tmp_path: Path, attack: str) -> None:
    part = next((run.folder / "cases").iterdir())
    with pytest.raises(OptionError) as found:
        run.cases(where=attack.format(out=tmp_path / "stolen", part=str(part).replace("'", "''")))
    assert "\n" not in str(found.value)
    assert "root:" not in str(found.value)
    assert not (tmp_path / "stolen").exists()
    assert run.cases(where=ATTACKS[-1]).num_rows == 300  # and nothing was broken by trying


def test_the_connection_itself_is_closed_to_other_files(run: Run, tmp_path: Path) -> None:
    """The second wall: even without the look at the filter, there is no way out."""
    for sql in (
        "SELECT * FROM read_text('/etc/passwd')",
        f"COPY cases TO '{tmp_path / 'stolen'}'",
        f"ATTACH '{tmp_path / 'stolen'}' AS x",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT * FROM secret",
    ):
        with pytest.raises(Exception, match=r"disabled|locked|does not exist|cannot"):
            run._questions._connection.execute(sql)
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("jbo = 'Tech'", "the run has no column 'jbo'; choose from: job, income, .*Did you mean 'job'"),
        ("job = Tech", "put text in single quotes: 'Tech'"),
        ('job = "Tech"', "put text in single quotes: 'Tech'"),
        ("  ", "the filter is empty"),
        ("k >", "is not valid SQL"),
        ("k = 'many'", "many"),
        ("job::INTEGER > 1", "Could not convert"),
        ("sum(k) > 1", "aggregates"),
        ("kk(k) > 1", "uses the function"),
        ("k > ?", "parameters"),
    ],
)
def test_slips_get_one_sentence(run: Run, where: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as found:
        run.cases(where=where)
    assert "\n" not in str(found.value)


FLOODS = [
    "k = len(range(100000000))",
    "k = len(generate_series(1, 100000000))",
    "k in (select unnest(range(1000000000)))",
    "length(repeat('x', 2000000000)) > k",
    "length(lpad('x', 2000000000, 'y')) > k",
    "length(replace(replace(job, 'e', repeat('e', 99999)), 'e', 'eee')) > k",
    "length(printf('%2000000000d', k)) > k",
    "length(format('{:>2000000000}', job)) > k",
    "length(bar(k, 0, 1, 100000000)) > 1",
    "pg_sleep(100) is null",
    "sleep_ms(100000) is null",
    "k = len(string_split(job, ''))",
    "len(list_transform([1, 2], lambda x: x)) > 1",
    "len([x for x in [1, 2]]) > 1",
    "len((select list(job) from cases)) > 1",
    "length((select string_agg(job, ',') from cases)) > 1",
    "[1, 2][1] = k",
    "{'a': k}.a = 1",
    "map {'a': k} is not null",
    "k::INTEGER[100000] is null",
    "k::BLOB is null",
    "try_cast(job as STRUCT(a INTEGER)) is null",
    "'0'::BIT is null",
    "interval 1 day > interval 2 day",
    "count(*) over () > 1",
    "k = (select max(k) over () from cases)",
    "getvariable('x') is null",
    "getenv('HOME') is null",
    "current_setting('memory_limit') is null",
    "write_log('x') is null",
    "nextval('x') = 1",
    "query_table('cases') is null",
    "md5(job) = 'x'",
    "k = (select a.k from cases a, cases b limit 1)",
    "k = (select a.k from cases a join cases b using (k) limit 1)",
    "k = (values (1))",
    " and ".join(["k > 1"] * 5000),
    "(" * 900 + "k > 1" + ")" * 900,
    "not " * 900 + "flips",
    "+".join(["k"] * 900) + " > 1",
    "case when flips then " * 200 + "true" + " else false end" * 200,
]


@pytest.mark.parametrize("flood", FLOODS)
def test_filters_make_little_of_little(run: Run, flood: str) -> None:
    begin = time.process_time()
    if flood.startswith(("(", "case")):  # nothing but depth, which is bearable here
        assert run.cases(where=flood).num_rows <= 300
    else:
        with pytest.raises(OptionError) as found:
            run.cases(where=flood)
        assert "\n" not in str(found.value)
        assert len(str(found.value)) < 400
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    "where",
    [
        "lower(job) in ('tech', 'care') and not flips",
        "job like 'T%' or job ilike '%e' or job similar to 'S.*' or job ~ 'ar'",
        "k between 2 and 4 and span is not null and coalesce(changed, 0) >= 0",
        "round(span * 100) % 2 = 0 and abs(income) < 3 and k ** 2 > 1",
        "case when flips then k > 2 else k > 3 end",
        "k::DOUBLE / 2 > 1.5 and try_cast(hours as VARCHAR) <> ''",
        "span >= (select avg(span) from cases where flips)",
        "exists (select * from cases other where other.k > cases.k)",
        "job in (select job from cases group by job having count(*) > 3)",
        "k = (select k from cases order by k desc limit 1)",
        "age_label = 'old' or contains(job, 'a') or left(job, 1) = 'T' or job || 'x' = 'Techx'",
        "greatest(k, 3) = k and sex is distinct from 'Male'",
    ],
)
def test_what_people_ask(run: Run, where: str) -> None:
    columns = set(run.columns)
    if "age_label" in where and "age_label" not in columns:
        where = where.replace("age_label = 'old' or ", "")
    if "sex" in where and "sex" not in columns:
        where = where.replace("sex is distinct from 'Male'", "job is distinct from 'Tech'")
    assert run.cases(where=where).num_rows <= 300


def test_a_filter_has_its_time(run: Run) -> None:
    inner = "exists (select * from cases b where sin(a.span * b.span) > 2 + cases.span)"
    slow = "exists (select * from cases a where " + inner + ")"  # noqa: S608 - to be refused
    begin = time.process_time()
    with time_limit(0.02), pytest.raises(OptionError, match=r"took longer than 0.02 s; .*time_limit"):
        run.cases(where=slow)
    assert time.process_time() - begin < 10
    assert run.cases(where="k >= 0").num_rows == 300  # the connection is none the worse for it
    with pytest.raises(OptionError, match="time limit of a filter is -1"), time_limit(-1):
        pass


def test_figures(run: Run) -> None:
    table = run.cases(labels=False).to_pandas()
    found = run.figures()
    ids = table[table.flips]
    assert (found["cases"], found["id_cases"], found["k_max"]) == (300, len(ids), table.k.max())
    assert found["k_max_on_data"] == table[table.changed == 0].k.max()
    assert found["k_max_within_2"] == table[table.changed <= 2].k.max()
    assert found["q_1_mean_id"] == pytest.approx(ids.q_1.mean())
    counts = table.k.value_counts()
    assert found["top"] == [{"k": k, "cases": counts[k]} for k in sorted(counts.index, reverse=True)]


def test_a_run_without_cases(tmp_path: Path, people_schema: Schema) -> None:
    RunWriter.create(tmp_path, MANIFEST, people_schema).finish("finished")
    run = Run.open(tmp_path)
    assert (len(run), run.cases().num_rows, run.cases(where="job = 'Tech'").num_rows) == (0, 0, 0)
    assert run.figures()["k_max"] is None
    assert "worst" in run.cases().column_names


def test_a_run_can_be_read_while_it_is_written(tmp_path: Path, people_schema: Schema, rng) -> None:
    with writing(tmp_path, people_schema) as writer:
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "random")
        writer.flush()
        run = Run.open(tmp_path)
        assert (run.status, len(run)) == ("running", 5)
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5, start=5), "random")
    assert run.cases().num_rows == 5  # a run is what it was when it was opened
    assert Run.open(tmp_path).cases().num_rows == 10


def test_an_answer_that_is_not_read_to_its_end_is_in_nobodys_way(run: Run) -> None:
    reader = run.batches()
    assert run.figures()["cases"] == 300
    assert sum(batch.num_rows for batch in reader) == 300


@pytest.mark.parametrize("top", [0, -1])
def test_a_top_that_makes_no_sense(run: Run, top: int) -> None:
    with pytest.raises(OptionError, match=f"top is {top}"):
        run.cases(top=top)
