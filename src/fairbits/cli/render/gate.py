"""What `fairbits gate` shows: the verdict, a line for each check, who is new, and what must be known."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless
from fairbits.gates import broken_by

if TYPE_CHECKING:
    from fairbits.gates import CheckResult, Finding, GateResult

_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow", "waived": "cyan", "waiting": "dim"}
_WIDTH = 80
#: New cases, waivers and proposals that are listed.
SHOWN = 5


def show(found: GateResult) -> None:
    """Print the verdict."""
    console = Console(highlight=False)
    suite = found.suite
    head = Text(found.headline.upper(), style=_STYLES[found.verdict if found.checks else "waiting"])
    head.append(f"  {harmless(found.subject)}", style="default bold")
    console.print(head.append(f" · model {harmless(found.identity)}", style="default not bold"))
    people = f"{suite['rows']:,} rows" + (f" and {suite['cases']:,} cases" if suite["cases"] else "")
    console.print(Text(f"suite {suite['id']} ({people}), ε = {suite['epsilon']:g}, {_against(found)}", style="dim"))
    for line in () if found.quality is None else found.quality.lines():
        console.print(Text(_filled(harmless(line), ""), style="dim"))
    console.print()
    names = [*(one.name for one in found.checks), *found.pending]
    width = max((len(name) for name in names), default=0)
    for one in found.checks:
        _check(console, one, width)
    for name in found.pending:
        console.print(Text("waiting".ljust(13), style=_STYLES["waiting"]).append(f"{name:<{width}}  no baseline yet"))
    _people(console, f"New cases: {len(found.new_cases):,}", found.new_cases)
    for waiver in found.waived[:SHOWN]:
        console.print()
        words = f"waived: {waiver.about} by {waiver.owner} until {waiver.expires.isoformat()}: {waiver.reason}"
        console.print(Text(_filled(harmless(words), "  "), style=_STYLES["waived"]))
    for waiver in found.expired[:SHOWN]:
        console.print()
        words = f"{waiver.ended}, so what it covered counts again; cure it, or have it signed anew ({waiver.reason})."
        console.print(Text(_filled(harmless(words[:1].upper() + words[1:]), "  "), style=_STYLES["fail"]))
    _proposed(console, found.proposed)
    for note in found.notes:
        console.print()
        console.print(Text(_filled(f"Note: {harmless(note)}", "  "), style="dim"))


def _against(found: GateResult) -> str:
    level = f"confidence {found.policy['confidence']:.0%}"
    if found.baseline is None:
        return f"no baseline, {level}"
    return f"baseline {harmless(found.baseline['identity'])}, {level}"


def _check(console: Console, one: CheckResult, width: int) -> None:
    word = "waived" if one.waived else one.verdict
    line = Text(word.ljust(13), style=_STYLES[word])
    around = one.interval()
    around = f" ({around})" if around else ""
    line.append(f"{one.name:<{width}}  {one.read(one.value)}{around}  {one.allowed()}", style="default not bold")
    console.print(line if len(line) <= _WIDTH else Text(line.plain.replace(around, "")))
    if len(line) > _WIDTH:
        console.print(Text(f"{'':15}{around.strip()}"))
    said = [one.reason or "", one.detail, broken_by(one.findings)]
    words = "; ".join(part for part in said if part)
    if words:
        console.print(Text(_filled(harmless(words), " " * 15), style="dim"))


def _people(console: Console, title: str, people: Sequence[Finding]) -> None:
    if not people:
        return
    console.print()
    console.print(Text(title, style="bold"))
    for one in people[:SHOWN]:
        before = "" if one.k_before is None else f", {one.k_before} before"
        place = f"row {one.row:,}" if one.row and one.origin == "row" else "found by a search"
        alike = f", {one.people} rows alike" if one.people > 1 else ""
        console.print(Text(f"  {one.fingerprint}  {one.check}: k = {one.k}{before}  ({place}{alike})"))
        words = ", ".join(f"{name} {value}" for name, value in one.attributes.items())
        console.print(Text(_filled(harmless(words), "    "), style="dim"))
    if len(people) > SHOWN:
        console.print(Text(f"  … {len(people) - SHOWN:,} more in gate.json", style="dim"))


def _proposed(console: Console, proposed: Sequence[Mapping[str, Any]]) -> None:
    if not proposed:
        return
    console.print()
    console.print(Text("Proposed for the suite (they change no verdict)", style="bold"))
    for one in proposed[:SHOWN]:
        words = ", ".join(f"{name} {value}" for name, value in one["attributes"].items())
        console.print(Text(f"  k = {one['k']}" + (", decision flips" if one["flips"] else "")))
        console.print(Text(_filled(harmless(words), "    "), style="dim"))


def show_waivers(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print waivers, those that ended marked."""
    console = Console(highlight=False)
    if not rows:
        console.print("The policy has no waivers.")
    for one in rows:
        about = f"check {one['check']}" if one["check"] else f"case {one['case']}"
        left = f"{one['days_left']} days left" if not one["expired"] else "EXPIRED"
        style = "bold red" if one["expired"] else "default"
        console.print(Text(f"{about}  until {one['expires']}  ({left})", style=style))
        console.print(Text(_filled(harmless(f"{one['owner']}: {one['reason']}"), "  "), style="dim"))


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
