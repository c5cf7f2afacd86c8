"""`pytest --fairbits subject.toml`: a test for every check of the policy, with the gate's own verdicts.

Nothing of fairbits is imported until somebody asks for it: the plugin costs a pytest run without it nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fairbits.gates import GateResult

_OPTIONS = ("policy", "suite", "baseline")
_GRANTS = ("trust-code", "trust-pickle")


class GateFailure(Exception):
    """A check that fails, or that is too uncertain to pass; its text is what the test shows."""


class GateTest(pytest.Item):
    """One check of one subject."""

    subject: str
    check: str

    @classmethod
    def make(cls, session: pytest.Session, subject: str, check: str) -> GateTest:
        """The test of a check."""
        item: GateTest = cls.from_parent(session, name=f"{subject}::{check}", nodeid=f"fairbits::{subject}::{check}")
        item.subject, item.check = subject, check
        return item

    def runtest(self) -> None:
        """Look up what was judged, once for all checks and workers."""
        outcomes = _outcomes(self.config, self.subject)
        nothing = "skip", "model and table have nothing that this check could be about"
        word, text = outcomes.get(_MISUSE) or outcomes.get(self.check, nothing)
        if word == "skip":
            pytest.skip(text)
        if word == "fail":
            raise GateFailure(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """One line for a verdict or for misuse; everything for a bug."""
        from fairbits.text import one_line

        if isinstance(excinfo.value, GateFailure):
            return one_line(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """What the header of a failure says."""
        return self.path, None, f"fairbits gate {self.subject}: {self.check}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("fairbits")
    group.addoption(
        "--fairbits",
        action="append",
        default=[],
        metavar="MODEL",
        help="Judge this model (a built-in name or an audit file): one test per check. May be given several times.",
    )
    for name in _OPTIONS:
        group.addoption(f"--fairbits-{name}", metavar="FILE", help=f"The {name}, as of `fairbits gate --{name}`.")
    for name in ("frozen", *_GRANTS):
        group.addoption(f"--fairbits-{name}", action="store_true", help=f"As of `fairbits gate --{name}`.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for every check, before others choose among the tests."""
    subjects = config.getoption("--fairbits")
    if not subjects:
        return
    from pathlib import Path

    from fairbits.errors import FairbitsError
    from fairbits.gates import settle_policy

    for subject in subjects:
        try:
            beside = Path(subject).parent if str(subject).endswith(".toml") else None
            policy = settle_policy(config.getoption("--fairbits-policy"), beside)
        except FairbitsError as error:
            raise pytest.UsageError(f"--fairbits {subject}: {error}") from None
        items.extend(GateTest.make(session, subject, one.name) for one in policy.requirements)


#: What each check came to: pass, skip or fail, and the text that says why. Misuse stands for all of them.
Outcomes = dict[str, tuple[str, str]]
_MISUSE = "(misuse)"
_KNOWN: pytest.StashKey[dict[str, Outcomes]] = pytest.StashKey()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the outcomes to a worker of pytest-xdist: the gate is run once, here, and writes a baseline once."""
    subjects = node.config.getoption("--fairbits")
    node.workerinput["fairbits"] = {subject: _outcomes(node.config, subject) for subject in subjects}


def _outcomes(config: pytest.Config, subject: str) -> Outcomes:
    """What the checks of a subject came to; computed once, by the process that others work for."""
    given: dict[str, Any] = getattr(config, "workerinput", {})
    known = config.stash.setdefault(_KNOWN, {**given.get("fairbits", {})})
    if subject not in known:
        from fairbits.errors import FairbitsError
        from fairbits.gates import gate

        options = {name: config.getoption(f"--fairbits-{name}") for name in _OPTIONS}
        options |= {name.replace("-", "_"): config.getoption(f"--fairbits-{name}") for name in ("frozen", *_GRANTS)}
        try:
            known[subject] = _of_result(gate(subject, **options))
        except FairbitsError as error:
            known[subject] = {_MISUSE: ("fail", str(error))}
    return known[subject]


def _of_result(result: GateResult) -> Outcomes:
    waiting = "there was no baseline yet; it is judged from the next run on"
    found: Outcomes = dict.fromkeys(result.pending, ("skip", waiting))
    for one in result.checks:
        if one.waived:
            found[one.name] = ("skip", f"{one.answered()}: {one.sentence()}")
        else:
            failed = ("fail", f"{one.verdict}: {one.sentence()}")
            found[one.name] = ("pass", "") if one.verdict == "pass" else failed
    if result.verdict == "fail" and all(word != "fail" for word, _ in found.values()):
        found[_MISUSE] = ("fail", result.sentence())  # a waiver that has ended
    return found
