"""`fairbits gate` as it is typed, `pytest --fairbits` in a project of its own, and the action's own steps."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.cli.calling import fairbits, fairbits_unread

from .planted import write_subject

ROOT = Path(__file__).resolve().parents[2]
POLICY = """
[checks.flip_rate]
max = {most}
max_rise = 0.005
[checks.k_max]
max = 9
"""


def policy(most: float, more: str = "") -> None:
    Path("fairbits.toml").write_text(POLICY.format(most=most) + more)


@pytest.mark.parametrize(("most", "code", "word"), [(0.2, 0, "PASS"), (0.01, 1, "FAIL"), (0.05, 3, "INCONCLUSIVE")])
def test_the_exit_code_is_the_verdict(project: Path, most: float, code: int, word: str) -> None:
    policy(most)
    done = fairbits("gate", "subject.toml")
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(f"{word}  planted")
    assert "there was no baseline" in done.stdout
    assert done.stdout.splitlines()[-1] == "next  fairbits audit subject.toml"
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads(fairbits("gate", "subject.toml", "--json").stdout)
    assert found["verdict"] == word.lower()
    assert found == json.loads(Path("gate/planted/gate.json").read_text()) | {"created": found["created"]}


def test_the_verdict_stands_though_nobody_reads_it(project: Path) -> None:
    policy(0.01)
    assert fairbits_unread("gate", "subject.toml") == 1


def test_all_outputs_at_once(project: Path) -> None:
    policy(0.01)
    words = ["--junit", "out/junit.xml", "--sarif", "out/gate.sarif", "--markdown", "out/gate.md", "--out", "out"]
    done = fairbits("gate", "subject.toml", *words, GITHUB_STEP_SUMMARY=str(project / "summary.md"))
    assert done.returncode == 1
    assert sorted(os.listdir("out")) == ["gate.json", "gate.md", "gate.sarif", "junit.xml"]
    assert Path("summary.md").read_text() == Path("out/gate.md").read_text()
    fairbits("gate", "subject.toml", GITHUB_STEP_SUMMARY=str(project / "summary.md"))
    assert Path("summary.md").read_text().count("# ") == 2  # a job's summary is added to, not replaced


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[checks]\nflip_rat = 0.1\n", "Did you mean 'flip_rate'?"),
        ("[checks]\nflip_rate = 7\n", "between 0 and 1"),
        ("[checks\n", "not valid TOML"),
        (
            "[checks]\nflip_rate = 0.1\n[[waivers]]\ncheck = 'flip_rate'\nreason = 'x'\nexpires = 2026-01-01\n",
            "no owner",
        ),
        (
            "[checks]\nflip_rate = 0.1\n[[waivers]]\ncheck = 'flip_rate'\nreason = 'x'\nowner = 'a'\n"
            "expires = 2120-01-01\n",
            "90 days are the most",
        ),
        ("[checks]\nflip_rate = 0.1\n\x1b]0;x\x07 = 1\n", "not valid TOML"),
        ("a = " + "[" * 3000, "not valid TOML"),
    ],
    ids=range(7),
)
def test_misuse_is_one_sentence_and_two(project: Path, text: str, words: str) -> None:
    Path("fairbits.toml").write_text(text)
    done = fairbits("gate", "subject.toml")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr
    assert done.stdout == ""
    assert not Path("gate").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--suite", "missing.parquet"],
        ["--suite", "subject.toml"],
        ["--baseline", "table.csv"],
        ["--policy", "missing.toml"],
        ["--frozen"],
        ["--protected", "nobody"],
        ["--propose", "soon"],
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense(project: Path, arguments: list[str]) -> None:
    policy(0.2)
    done = fairbits("gate", "subject.toml", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_an_ended_waiver_fails_the_build(project: Path) -> None:
    policy(0.01, '[[waivers]]\ncheck = "flip_rate"\nreason = "x"\nowner = "bob"\nexpires = 2020-01-01\n')
    done = fairbits("gate", "subject.toml")
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "The waiver of check 'flip_rate' by bob expired on 2020-01-01, so what it covered counts again (x)." in said


def test_a_first_run_with_nothing_to_judge_does_not_say_pass(project: Path) -> None:
    done = fairbits("gate", "subject.toml")
    assert done.returncode == 0
    assert done.stdout.startswith("BASELINE WRITTEN, NOTHING JUDGED YET  planted")
    assert "PASS" not in done.stdout
    again = fairbits("gate", "subject.toml").stdout
    assert again.startswith("NO WORSE THAN THE BASELINE; NO LIMITS SET  planted")
    assert "PASS" not in again


def test_waivers_are_listed_ended_ones_too(project: Path) -> None:
    assert fairbits("gate", "--waivers").returncode == 2
    policy(0.2)
    assert "no waivers" in fairbits("gate", "--waivers").stdout
    ended = '[[waivers]]\ncase = "0123456789abcdef"\nreason = "x"\nowner = "bob\\u001b[1m"\nexpires = 2020-01-01\n'
    policy(0.2, ended)
    done = fairbits("gate", "--waivers")
    assert done.returncode == 0
    assert re.search("case 0123456789abcdef +2020-01-01 +EXPIRED", done.stdout)
    assert "\x1b" not in done.stdout
    assert json.loads(fairbits("gate", "--waivers", "--json").stdout)[0]["expired"] is True


def test_freeze_and_go_on(project: Path) -> None:
    policy(0.2)
    assert fairbits("search", "subject.toml", "--evaluations", 2000, "--out", "run", "--json").returncode == 0
    done = fairbits("gate", "run", "--freeze", "--rows", 400, "--cases", 20)
    assert done.returncode == 0, done.stderr
    assert re.match(r"gate/planted/suite.parquet\n400 rows and (20|19|18) cases of planted", done.stdout)
    assert fairbits("gate", "subject.toml").returncode == 0
    assert fairbits("gate", "subject.toml", "--frozen").returncode == 0
    assert fairbits("gate", "run", "--frozen").returncode == 0
    assert json.loads(Path("run/gate.json").read_text())["suite"]["cases"] >= 18
    card = fairbits("report", "run", "--card")
    assert card.stderr == "fairbits: `fairbits report --card` is now `fairbits report --form card`.\n"
    assert "**The gate passed.**" in Path("run/model-card.md").read_text(encoding="utf-8")
    write_subject(project, gap=150)
    worse = fairbits("gate", "subject.toml", "--frozen")
    assert worse.returncode == 1
    assert "flip_rate_rise" in worse.stdout


def test_the_plugin_in_a_project_of_its_own(project: Path) -> None:
    """One test per check, the gate's verdicts, -k chooses; nothing of fairbits is loaded without the option."""
    (project / "test_own.py").write_text(
        "import sys\n\ndef test_own(pytestconfig):\n"
        "    loaded = any(m.startswith('fairbits.gates') for m in sys.modules)\n"
        "    assert loaded == bool(pytestconfig.getoption('--fairbits'))\n"
    )
    installed = {entry.name for entry in entry_points(group="pytest11")}
    named = [] if "fairbits" in installed else ["-p", "fairbits.pytest_plugin"]  # a checkout need not be installed
    command = [sys.executable, "-m", "pytest", *named, "-p", "no:cacheprovider", "-rA", "-q"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=False, timeout=300)

    assert run().returncode == 0
    policy(0.01)
    done = run("--fairbits", "subject.toml")
    assert done.returncode == 1, done.stdout
    assert re.search(r"FAILED fairbits::subject.toml::flip_rate - .*fail: flip_rate = ", done.stdout)
    assert "PASSED fairbits::subject.toml::k_max" in done.stdout
    assert "1 failed, 2 passed, 1 skipped" in done.stdout  # the change waits for a baseline
    assert "Traceback" not in done.stdout
    chosen = run("--fairbits", "subject.toml", "-k", "flip_rate_rise")
    assert chosen.returncode == 0, chosen.stdout
    assert "1 passed" in chosen.stdout
    baseline = project / "gate" / "planted" / "baseline.parquet"
    baseline.unlink()
    several = run("--fairbits", "subject.toml", "-n", "2", "-p", "xdist")
    # Run by each worker for itself, the second would find the baseline of the first, and have nothing to wait for.
    assert "1 failed, 2 passed, 1 skipped" in several.stdout, several.stdout
    assert baseline.is_file()
    Path("fairbits.toml").write_text("[checks]\nflip_rat = 1\n")
    misuse = run("--fairbits", "subject.toml")
    assert misuse.returncode == 4
    assert "Did you mean 'flip_rate'?" in misuse.stdout + misuse.stderr


def test_the_plugin_is_announced_and_light() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"fairbits": "fairbits.pytest_plugin"}
    code = (
        "import pytest, sys; before = set(sys.modules); import fairbits.pytest_plugin; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('__')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fairbits', 'fairbits._version', 'fairbits.pytest_plugin']"


def test_the_action_runs_the_command(project: Path) -> None:
    """The step of action.yml, run by a shell as GitHub would, with the inputs in its environment."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    steps = [step for step in action["runs"]["steps"] if "fairbits gate" in step.get("run", "")]
    assert len(steps) == 1
    assert "${{" not in steps[0]["run"]  # inputs reach the shell as variables, never as text of the script
    policy(0.01)
    given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | {
        "subject": "subject.toml"
    }
    environment = {}
    for name, value in steps[0]["env"].items():
        wanted = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)
        assert wanted, value
        environment[name] = given[wanted[1]]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    Path("bin").mkdir()
    Path("bin/fairbits").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fairbits "$@"\n')
    Path("bin/fairbits").chmod(0o755)
    outputs = {"GITHUB_OUTPUT": str(project / "outputs"), "GITHUB_STEP_SUMMARY": str(project / "summary.md")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[0]["run"]],
        env={**os.environ, **environment, **outputs, "PATH": f"{project / 'bin'}{os.pathsep}{path}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    assert Path("fairbits-gate/gate.json").is_file()
    assert Path("fairbits-gate/gate.sarif").is_file()
    assert "verdict=fail" in Path("outputs").read_text()
    assert "# ❌ fail" in Path("summary.md").read_text()


def commands_of(document: Path) -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ fairbits ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_printed_commands_run(project: Path) -> None:
    """Every command of docs/gate.md, in its order, on the policy that the page prints."""
    page = ROOT / "docs" / "gate.md"
    printed = next(
        block for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL) if "[checks" in block
    )
    Path("fairbits.toml").write_text(re.sub(r"expires = \S+", f"expires = {_soon()}", printed))
    Path("subject.toml").write_text(Path("subject.toml").read_text().replace('"planted"', '"loans"'))
    commands = commands_of(page)
    assert len(commands) >= 6
    for words in commands:
        done = fairbits(*words)
        assert done.returncode in (0, 1, 3), (words, done.stderr)
        assert done.stderr.startswith("fairbits:") is False, (words, done.stderr)


def _soon() -> str:
    from datetime import timedelta

    from fairbits.gates import today

    return (today() + timedelta(20)).isoformat()


def test_help_says_how_it_is_called() -> None:
    done = fairbits("gate", "--help")
    assert done.returncode == 0
    assert "fairbits gate [OPTIONS] [MODEL]" in done.stdout
    assert all(name in done.stdout for name in ("--freeze", "--waivers", "--policy", "--update-baseline"))
