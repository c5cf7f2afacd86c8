"""Going on with a run: after kill -9 at any moment, with other settings, with damaged parts."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairbits import Schema
from fairbits.errors import OptionError
from fairbits.store import Run, RunWriter, TaskWriter, read_parquet, write_parquet
from fairbits.store.files import read_json
from fairbits.store.parts import Layout
from tests.conftest import random_people
from tests.store.conftest import MANIFEST, figures, parts_of, write_run, writing

ROUNDS, BATCHES, ROWS = 60, 4, 25
#: How often the writer dies; each time it has written at most 19 of the 240 batches more.
KILLS = 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0.05}, "epsilon 0.025, but 0.05 was asked for"),
        ({"options": {"batch": 4096, "within": 2}}, "options.within nothing, but 2 was asked for"),
        ({"protected": ["sex"]}, "protected age, sex, but sex was asked for"),
        ({"source": "ff", "seed": 7}, "source 0123456789abcdef, but ff was asked for; seed 0, but 7 was"),
        ({"extra": True}, "extra nothing, but True was asked for"),
    ],
)
def test_other_settings_are_refused_by_name(
    tmp_path: Path, people_schema: Schema, rng, change: dict, words: str
) -> None:
    write_run(tmp_path, people_schema, rng)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(OptionError, match=f"made with {words}") as found:
        RunWriter.resume(tmp_path, MANIFEST | change)
    assert "\n" not in str(found.value)
    assert (tmp_path / "run.json").read_bytes() == before


def test_the_budget_may_grow(tmp_path: Path, people_schema: Schema, rng) -> None:
    write_run(tmp_path, people_schema, rng)
    RunWriter.resume(tmp_path, MANIFEST | {"budget": {"seconds": 600}, "threads": 1}).finish("finished")
    assert Run.open(tmp_path).manifest["budget"] == {"seconds": 600}


def test_going_on_keeps_what_was_flushed(tmp_path: Path, people_schema: Schema, rng) -> None:
    people = write_run(tmp_path, people_schema, rng)
    old = parts_of(tmp_path)
    for leftover in ("run.json.tmp", f"cases/{old[0].name}.tmp"):
        (tmp_path / leftover).write_bytes(b"half")
    with writing(tmp_path, people_schema, resume=True) as writer:
        assert writer.before is not None
        assert (writer.record.rows, writer.before.state) == (300, None)
        stored = list(writer.stored_codes(rows=32))
        assert max(map(len, stored)) <= 32
        assert np.array_equal(np.concatenate(stored)[:, [1, 2, 4]], people[:, [1, 2, 4]])
        assert not list(tmp_path.rglob("*.tmp"))
        writer.append(random_people(rng, people_schema, 9), figures(rng, 9, start=300), "climb")
    run = Run.open(tmp_path)
    assert len(run) == 309
    assert set(old) < set(parts_of(tmp_path))
    assert len(list((tmp_path / "tasks").iterdir())) == 1  # what the first attempt said is in the record of the second


@pytest.mark.parametrize(("rows", "shown"), [([7], 7), ([7, 12], 12), ([12, 7], 12), ([20, 20, 20], 20)])
def test_of_several_attempts_the_one_that_came_furthest_counts(
    tmp_path: Path, people_schema: Schema, rng, rows: list[int], shown: int
) -> None:
    """Two workers at the same task, neither knowing of the other: nobody is seen twice."""
    RunWriter.create(tmp_path, MANIFEST, people_schema).close()
    people, found = random_people(rng, people_schema, 20), figures(rng, 20)
    for n in rows:
        with TaskWriter(tmp_path, Layout(people_schema), 0) as writer:
            some = {name: value if np.ndim(value) == 0 else value[:n] for name, value in found.items()}
            writer.append(people[:n], some, "climb")
    run = Run.open(tmp_path)
    assert len(run) == run.cases().num_rows == shown


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_what_is_no_run(tmp_path: Path, folder: str) -> None:
    with pytest.raises(OptionError, match="give the folder that"):
        RunWriter.resume(tmp_path / folder, MANIFEST)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(OptionError, match=r"run\.json' is damaged|has format"):
        Run.open(tmp_path)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _flip_inside(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)


def _other_columns(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["k"]), path)


DAMAGE = {
    "truncated": _truncate,
    "empty": lambda path: path.write_bytes(b""),
    "columns": _other_columns,
    "noise": lambda path: path.write_bytes(os.urandom(5000)),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_part_is_named_and_the_rest_stays(tmp_path: Path, people_schema: Schema, rng, kind: str) -> None:
    write_run(tmp_path, people_schema, rng)
    part = parts_of(tmp_path)[1]
    DAMAGE[kind](part)
    run = Run.open(tmp_path)
    assert list(run.damaged) == [part.name]
    assert f"{part.name!r} was skipped" in run.warnings()[0]
    assert len(run) == run.cases().num_rows == run.figures()["cases"] == sum(map(len, run.codes())) == 200
    with writing(tmp_path, people_schema, resume=True) as writer:
        assert writer.before is not None
        # The task is begun again, but how far it was stays known: that time is not spent twice.
        assert (writer.before.parts, writer.before.evaluations) == ((), 300)
        writer.append(random_people(rng, people_schema, 4), figures(rng, 4, start=300), "climb")
    aside = (tmp_path / "cases" / (part.name + ".damaged")).exists()
    assert aside == (kind != "missing")
    assert (len(Run.open(tmp_path)), Run.open(tmp_path).damaged) == (4, {})


def test_a_record_that_is_missing_is_not_passed_over(tmp_path: Path, people_schema: Schema, rng) -> None:
    """A folder that was copied in part: nothing else names the parts, and the hash on record is not of what is left."""
    write_run(tmp_path, people_schema, rng)
    record = json.loads((tmp_path / "run.json").read_text())
    more = {"content": Run.open(tmp_path).content(anew=True), "scale": {**record["scale"], "done": 1}}
    (tmp_path / "run.json").write_text(json.dumps({**record, **more}))
    (task,) = (tmp_path / "tasks").iterdir()
    task.unlink()
    run = Run.open(tmp_path)
    assert (len(run), run.content()) == (0, run.content(anew=True))
    assert "1 of the records in" in run.warnings()[0]
    assert "are missing, and their cases with them; restore them from a copy, or go on" in run.warnings()[0]


@pytest.mark.parametrize(
    ("name", "remedy"), [("tasks", "delete it and go on with"), ("summary.json", "write it again with")]
)
def test_a_damaged_file_says_what_to_do(tmp_path: Path, people_schema: Schema, rng, name: str, remedy: str) -> None:
    write_run(tmp_path, people_schema, rng)
    file = next((tmp_path / "tasks").iterdir()) if name == "tasks" else tmp_path / name
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(OptionError, match=f"{file.name}' is damaged .*; restore it from a copy, or {remedy}"):
        _ = Run.open(tmp_path).summary


def test_damage_inside_a_part_is_found_by_its_checksum(tmp_path: Path, people_schema: Schema, rng) -> None:
    write_run(tmp_path, people_schema, rng)
    _flip_inside(parts_of(tmp_path)[1])
    with writing(tmp_path, people_schema, resume=True) as writer:
        assert writer.before is not None
        assert writer.before.parts == ()


def test_a_changed_value_is_found_by_its_checksum_alone(tmp_path: Path, people_schema: Schema, rng) -> None:
    """A byte whose change still gives a table that can be read, with other values in it."""
    write_run(tmp_path, people_schema, rng)
    path = parts_of(tmp_path)[1]
    whole, content = pq.read_table(path), path.read_bytes()
    for place in range(4, len(content) // 2):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            changed = pq.read_table(path)
        except (OSError, ValueError):
            continue
        if not changed.equals(whole):
            break
    else:
        pytest.fail("every change of a byte breaks the reading of the part; this test needs one that does not")
    with writing(tmp_path, people_schema, resume=True) as writer:
        assert writer.before is not None
        assert writer.before.parts == ()


def test_damage_that_shows_only_while_reading(tmp_path: Path, people_schema: Schema, rng) -> None:
    write_run(tmp_path, people_schema, rng)
    path = parts_of(tmp_path)[1]
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)  # the pages are gone, the table of contents is whole
    path.write_bytes(content)
    run = Run.open(tmp_path)
    assert not run.damaged
    assert run.cases(where="job = 'Tech' or true").num_rows == 200
    assert list(run.damaged) == [path.name]


def test_runs_of_the_old_format_are_refused_in_one_sentence(tmp_path: Path, people_schema: Schema, rng) -> None:
    write_run(tmp_path, people_schema, rng)
    record = read_json(tmp_path / "run.json")
    (tmp_path / "run.json").write_text(json.dumps({**record, "format": 2}))
    with pytest.raises(OptionError, match=r"has format 2, but this fairbits reads 3; use .* or search again"):
        Run.open(tmp_path)


SEARCH = textwrap.dedent(
    """
    import os, random, signal, sys, threading, time
    import numpy as np
    from fairbits import Attribute, Schema
    from tests.store.conftest import figures, writing

    schema = Schema((Attribute(name="id", kind="integer", high=10**6),
                     Attribute(name="sex", kind="integer", high=5, protected=True)))

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def search(folder, rounds, batches, rows, last):
        written = 0
        again = os.path.exists(folder + "/run.json")
        with writing(folder, schema, resume=again, part_rows=90) as writer:
            seen = {int(i) for codes in writer.stored_codes() for i in codes[:, 0]}
            state = writer.before.state if writer.before else None
            for number in range((state or {"rounds": 0})["rounds"], rounds):
                for batch in range(batches):
                    start = (number * batches + batch) * rows
                    ids = [i for i in range(start, start + rows) if i not in seen]
                    found = figures(np.random.default_rng(number), len(ids))
                    found["evaluation"] = np.array(ids, dtype=np.int64)
                    writer.append(np.column_stack([ids, np.zeros(len(ids))]), found, "random")
                    written += 1
                    if written == last:  # at any moment of what comes next, but never so late that nothing is left
                        threading.Timer(random.Random(last).uniform(0, 0.004), kill).start()
                    if written == last + 10:
                        kill()
                    time.sleep(0.0005)
                writer.checkpoint({"rounds": number + 1})

    # Forks, so that the packages are loaded once and every victim starts at once.
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            search(*eval(line))
            os._exit(0)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
    """
)


def test_killed_at_any_moment_it_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    chance = random.Random(3)  # noqa: S311
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    nursery = subprocess.Popen(
        [sys.executable, "-c", SEARCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert nursery.stdin
    assert nursery.stdout
    statuses = []
    with nursery:
        for last in [*(chance.randint(1, 9) for _ in range(KILLS)), -100]:
            nursery.stdin.write(f"({str(folder)!r}, {ROUNDS}, {BATCHES}, {ROWS}, {last})\n")
            nursery.stdin.flush()
            nursery.stdout.readline()  # which child it is
            statuses.append(int(nursery.stdout.readline()))
            if (folder / "run.json").exists():
                _check(folder)
        nursery.stdin.close()
    assert statuses == [signal.SIGKILL] * KILLS + [0]
    run = Run.open(folder)
    assert run.status == "finished"
    found = run.query('SELECT "id" FROM cases ORDER BY "id"')["id"].to_pylist()
    assert found == list(range(ROUNDS * BATCHES * ROWS))


def _check(folder: Path) -> None:
    """Whole batches, nothing twice, and never a checkpoint ahead of its cases."""
    run = Run.open(folder)
    assert not run.damaged
    ids = [int(i) for codes in run.codes() for i in codes[:, 0]]
    assert len(ids) == len(set(ids))
    assert len(ids) % ROWS == 0
    read_json(folder / "run.json")
    state = run.tasks[0].state if run.tasks else None
    done = (state or {"rounds": 0})["rounds"]
    assert set(range(done * BATCHES * ROWS)) <= set(ids)


def test_the_last_checkpoint_is_there_on_going_on(tmp_path: Path, people_schema: Schema, rng) -> None:
    with writing(tmp_path, people_schema) as writer:
        writer.append(random_people(rng, people_schema, 5), figures(rng, 5), "climb")
        writer.checkpoint({"rounds": 3})
    with writing(tmp_path, people_schema, resume=True) as again:
        assert again.before is not None
        assert again.before.state == {"rounds": 3}


def test_a_byte_that_changed_inside_a_part_is_noticed(tmp_path: Path, people_schema: Schema, rng) -> None:
    """Wherever it is: most of them stop no reader, and would only change figures."""
    write_run(tmp_path, people_schema, rng)
    part = parts_of(tmp_path)[1]
    sound, cases, silent = part.read_bytes(), Run.open(tmp_path).cases(), 0
    for place in rng.integers(4, len(sound) - 8, 25):
        content = bytearray(sound)
        content[place] ^= 0xFF
        part.write_bytes(content)
        run = Run.open(tmp_path)
        silent += not run.damaged
        run.verify()
        assert list(run.damaged) == [part.name] or run.cases().equals(cases), place
    assert silent > 8  # else this would show nothing


def test_files_beside_the_parts_have_checksums_too(tmp_path: Path, rng) -> None:
    path, table = tmp_path / "rows.parquet", pa.table({"a": rng.normal(size=2_000)})
    write_parquet(path, table)
    assert read_parquet(path, remedy="x").equals(table)
    content = bytearray(path.read_bytes())
    content[5_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(OptionError, match=r"is damaged .*checksum"):
        read_parquet(path, remedy="x")


def test_a_number_that_no_arithmetic_takes_is_damage(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"seed": {2**128 - 1}, "cases": {"9" * 400}}}')
    with pytest.raises(OptionError, match=r"is damaged \(a number has 400 digits\)"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(f'{{"seed": {2**128 - 1}}}')
    assert read_json(tmp_path / "a.json") == {"seed": 2**128 - 1}
