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
        """Judge the subject, once for all of its checks, and look at this one."""
        result = _result(self.config, self.subject)
        if self.check in result.pending:
            pytest.skip("there was no baseline yet; it is judged from the next run on")
        found = next((one for one in result.checks if one.name == self.check), None)
        if found is None:
            pytest.skip("the subject has nothing that this check could be about")
        if found.waived:
            pytest.skip(f"{found.answered()}: {found.sentence()}")
        if found.verdict != "pass":
            raise GateFailure(f"{found.verdict}: {found.sentence()}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """One line for a verdict or for misuse; everything for a bug."""
        from fairbits.errors import FairbitsError
        from fairbits.text import one_line

        if isinstance(excinfo.value, GateFailure | FairbitsError):
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
        metavar="SUBJECT",
        help="Judge this subject (a name or a subject.toml): one test per check. May be given several times.",
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


_RESULTS: pytest.StashKey[dict[str, Any]] = pytest.StashKey()


def _result(config: pytest.Config, subject: str) -> GateResult:
    """The verdict over a subject, or the error that kept it from one; computed once."""
    known = config.stash.setdefault(_RESULTS, {})
    if subject not in known:
        from fairbits.errors import FairbitsError
        from fairbits.gates import gate

        try:
            given = {name: config.getoption(f"--fairbits-{name}") for name in _OPTIONS}
            given |= {"frozen": config.getoption("--fairbits-frozen")}
            given |= {name.replace("-", "_"): config.getoption(f"--fairbits-{name}") for name in _GRANTS}
            known[subject] = gate(subject, **given)
        except FairbitsError as error:
            known[subject] = error
    found = known[subject]
    if isinstance(found, Exception):
        raise found
    result: GateResult = found
    return result
