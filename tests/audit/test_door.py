"""What a command does, Python does by one call: the same files, the same figures, the same command to do it again."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from fairbits import Audit, Budget
from fairbits.audit import AuditRun, diff_models, draft_subject, find_subjects
from fairbits.audit.audit import SubjectOrigin, command_of
from fairbits.errors import OptionError
from fairbits.options import AuditOptions, DebugOptions, DiffOptions
from fairbits.search import Settings
from fairbits.subject import export_subject
from tests.cli.calling import fairbits
from tests.search.planted import planted_subject

COMMANDS = Path(__file__).resolve().parents[2] / "src" / "fairbits" / "cli" / "commands"
#: What does the work of a stage: commands leave that to the door.
STAGES = {
    *("search_subject", "problem_of", "kept_settings", "debug_run", "repair_run", "certify_subject", "certify_run"),
    *("compute_report", "write_report", "write_contest", "compare", "diff_subjects", "sides_of", "write_diff"),
    *(
        "measure_table",
        "evaluator_of",
        "study_subject",
        "filing_of",
        "study",
        "draft_schema",
        "write_draft",
    ),
    *("audit_subject", "audit_scores", "subject_of", "check_same", "new_folder", "write_json"),
}


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    export_subject(planted_subject(), folder)
    return folder / "subject.toml"


@pytest.fixture(scope="module")
def run(subject: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    audit = Audit.of(subject, protected=["sex"])
    audit.search(budget=Budget(evaluations=200), strategy="random", seed=7, epsilon=0.05, out=folder, threads=1)
    return folder


def test_commands_leave_the_work_to_the_door() -> None:
    for file in COMMANDS.glob("*.py"):
        imported = {
            alias.name
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairbits")
            for alias in node.names
        }
        assert not imported & STAGES, file.name


def test_options_are_given_by_name() -> None:
    for record in (AuditOptions, Settings):
        with pytest.raises(TypeError, match="positional"):
            record(1.0)


def test_a_search_goes_on_under_its_own_settings(run: Path) -> None:
    audit = Audit.of_run(run)
    assert audit.subject.schema.protected == ("sex",)
    more = audit.search(budget=Budget(evaluations=300), out=run, resume=True, threads=1)
    assert (more.manifest["seed"], more.manifest["epsilon"], more.manifest["strategy"]) == (7, 0.05, "random")
    assert more.summary["evaluations"] == 300
    with pytest.raises(OptionError, match="made with seed 7, but 8 was asked for"):
        audit.search(out=run, resume=True, seed=8)
    with pytest.raises(OptionError, match="was asked for"):
        Audit.of_run(run, protected=["age"])
    for go_on in (audit.search, audit.audit):
        with pytest.raises(OptionError, match="give its folder as out"):
            go_on(resume=True)


def test_an_audit_goes_on_under_its_own_settings(run: Path) -> None:
    skip = ["debug", "repair", "certify", "proxies"]
    found = Audit.of_run(run).audit(out=run, resume=True, skip=skip, threads=1)
    assert json.loads((run / "measure.json").read_text())["seed"] == 7
    assert found.data.about.epsilon == 0.05
    with pytest.raises(OptionError, match=r"made with epsilon 0\.05, but 0\.1 was asked for"):
        Audit.of_run(run).audit(out=run, resume=True, skip=skip, epsilon=0.1)


def test_cases_go_to_a_file(run: Path, tmp_path: Path) -> None:
    opened = AuditRun.open(run)
    assert opened.export(tmp_path / "python.csv", where="k > 1", top=5) == 5
    assert fairbits("cases", run, "--where", "k > 1", "--top", 5, "--out", tmp_path / "shell.csv").returncode == 0
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "shell.csv").read_bytes()
    with pytest.raises(OptionError, match="exists; choose another out"):
        opened.export(tmp_path / "python.csv")


def test_a_comparison_of_strategies_leaves_the_same_files(subject: Path, tmp_path: Path) -> None:
    options = ["--strategies", "random", "--budget", "0.1s", "--repeats", 1, "--protected", "sex", "--threads", 1]
    done = fairbits("paper", "compare", subject, *options, "--out", tmp_path / "shell")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "shell" / "compare.html") in done.stdout
    audit = Audit.of(subject, protected=["sex"])
    found = audit.compare(["random"], budget="0.1s", repeats=1, out=tmp_path / "python", threads=1)
    assert found.page == tmp_path / "python" / "compare.html"
    names = [sorted(path.name for path in (tmp_path / one).iterdir()) for one in ("shell", "python")]
    assert names[0] == names[1]
    assert found.command.startswith(f"fairbits paper compare {subject} --strategies random --budget 0.1s --repeats 1 ")
    assert "--protected sex" in found.command
    assert found.command in (tmp_path / "shell" / "compare.html").read_text()
    again = Audit(planted_subject().model, planted_subject().table, planted_subject().schema)
    assert again.compare(["random"], budget="0.1s", repeats=1, out=tmp_path / "own", threads=1).command == ""


def test_two_models_are_compared_by_one_call(subject: Path, tmp_path: Path) -> None:
    model = next(path for path in subject.parent.iterdir() if path.stem == "model")
    page = tmp_path / "page.html"
    shown = json.loads(fairbits("diff", subject, model, "--top", 3, "--people", 20, "--json").stdout)
    found = diff_models(subject, model, DiffOptions(top=3, people=20), html=page)
    assert found.command == shown["command"]
    assert found.command.endswith("--people 20")
    assert found.command in page.read_text()
    assert found.document()["shifts"][0]["before"] == shown["shifts"][0]["before"]
    assert Audit.of(subject).diff(str(model), top=3, people=20).command == found.command
    with pytest.raises(OptionError, match="does not exist; make it, or choose another html"):
        diff_models(subject, model, html=tmp_path / "none" / "page.html")


def test_a_subject_is_drafted_by_one_call(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = (f"{'fm'[n % 2]},{n % 7},{'yes' if n % 3 else 'no'}" for n in range(60))
    table.write_text("sex,grade,hired\n" + "\n".join(rows) + "\n")
    draft_subject(table, target="hired", protected=["sex"], out=tmp_path / "subject.toml")
    words = ["--target", "hired", "--protected", "sex", "--out", tmp_path / "shell.toml", "--yes"]
    assert fairbits("init", table, *words).returncode == 0
    shell = (tmp_path / "shell.toml").read_text().replace("shell.toml", "subject.toml")
    assert (tmp_path / "subject.toml").read_text() == shell
    with pytest.raises(OptionError, match="not in the table"):
        draft_subject(table, target="hired", protected=["sex"], ignored=["age"], out=tmp_path / "other.toml")


def test_a_fleet_does_not_audit_what_it_wrote(subject: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    export_subject(planted_subject(), models / "one")
    export_subject(planted_subject(), models / "out" / "one" / "repaired")
    assert [one.name for one in find_subjects(models, models / "out")] == ["one"]


def test_commands_are_written_as_they_are_typed() -> None:
    origin = SubjectOrigin(protected=("sex", "age"), grants={"max_rows": 5})
    options = DebugOptions(seed=3, all_layers=True, inside=False, samples=1000, threads=4)
    assert command_of("debug", ("my file",), options, origin) == (
        "fairbits debug 'my file' --all-layers --no-layers --seed 3 --protected sex,age --max-rows 5"
    )
    assert command_of("debug", (None,), options, origin) == ""
