"""A comparison of two models as one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from fairbits.blocks import (
    Bar,
    Block,
    Cards,
    Code,
    Columns,
    Commands,
    FigureCard,
    Heading,
    Page,
    PagePart,
    Paragraph,
    People,
    PersonCard,
    TableBlock,
    Tag,
    Text,
    figure,
    label,
    paragraphs,
    share,
    shown,
)
from fairbits.diff.pairs import Changed, ModelDiff, PairedChange, PersonShift, Shift
from fairbits.errors import on_disk
from fairbits.report import render_page
from fairbits.store import write_whole
from fairbits.text import from_to, joined, number, percent, signed


def diff_page(diff: ModelDiff) -> Page:
    return Page(
        subject=f"{diff.a.name} → {diff.b.name}",
        command="diff",
        title=f"{diff.a.name} and {diff.b.name}: two models",
        sentence=diff.sentence.replace(" %", "\N{NO-BREAK SPACE}%"),
        opening=tuple(_opening(diff)),
        parts=tuple(_parts(diff)),
        made_from="both models",
    )


def _opening(diff: ModelDiff) -> Iterator[Block]:
    total = number(diff.rows_total)
    people = f"All {total}" if diff.rows == diff.rows_total else f"{number(diff.rows)} of {total}"
    yield Paragraph(
        f"A is {diff.a.name}, B is {diff.b.name}. {people} people of the table, each under all "
        f"{number(diff.m)} combinations of {joined(list(diff.protected))}, asked of both models. Scores of the same "
        f"twin differ by {diff.score_distance:.3g} on average, at most by {diff.score_distance_max:.3g}.",
        tone="lead",
    )
    yield from paragraphs((f"Note: {line}" for line in diff.notes), "note")


def _sides(diff: ModelDiff) -> Block:
    sides = []
    for name, side in (("A", diff.a), ("B", diff.b)):
        digest = (Code(f"sha256 {side.sha256}"),) if side.sha256 else ()
        known = Paragraph((f"{side.model}, identity {side.identity} ", *digest), tone="small")
        sides.append([Heading(f"{name}: {side.name}"), *paragraphs(side.quality.lines(), "small"), known])
    return Columns(sides)


def _parts(diff: ModelDiff) -> Iterator[PagePart]:
    exact = "exact" if diff.rows == diff.rows_total else "statistical"
    lead = (
        "Everybody is compared with themselves: the change is B minus A ",
        Tag(exact),
        ", its 95 % interval says how much it would move with other people drawn like these ",
        Tag("statistical"),
    )
    table = TableBlock(
        [label("figure"), *(shown(head) for head in ("A", "B", "change", "95 % interval")), label("")],
        [_shift(shift) for shift in diff.shifts],
    )
    yield PagePart(
        "figures",
        "What changed",
        [
            Paragraph(lead, tone="lead"),
            table,
            Paragraph("Open: the interval holds 0, so these people do not tell.", tone="small"),
        ],
    )
    yield PagePart("models", "The two models", [_sides(diff)])
    if diff.changed:
        yield PagePart("decisions", "Decisions that changed", [_changed(diff.changed)])
    yield PagePart("groups", "Groups", [_groups(diff)])
    rose = f"k rose for {number(diff.k_rose)} people and fell for {number(diff.k_fell)} of {number(diff.rows)}."
    first = f" The first {len(diff.people)}, by classes gained, then by the span that was added:" if diff.people else ""
    worse: list[Block] = [Paragraph(rose + first, kind="exact", tone="lead")]
    if diff.people:
        worse.append(People([_person(i, person) for i, person in enumerate(diff.people, 1)], diff.changed is not None))
    yield PagePart("worse", "Who got worse", worse)
    if diff.layers:
        yield _layers(diff)
    about = (
        f"ε = {diff.epsilon:g}, {diff.partition} partition, seed {diff.seed}. Layers as in CRADLE (Pham et al., "
        "ICSE 2019). A decision that changed is not by itself a harm, and one that stayed is not by itself right."
    )
    yield PagePart(
        "again", "Reproduce", [*([Commands([diff.command])] if diff.command else []), Paragraph(about, tone="small")]
    )


def _changed(changed: Changed) -> Block:
    rate = changed.rate
    drawn = f"{percent(rate.value)}; {from_to(rate.low, rate.high)} of people drawn like them"
    cards = [
        FigureCard("Different decision", number(changed.people), "exact", drawn),
        FigureCard("Favourable lost", number(changed.lost), "exact"),
        FigureCard("Favourable gained", number(changed.gained), "exact"),
    ]
    if changed.made_right is not None:
        both = f"{number(changed.made_right)} against {number(changed.made_wrong)}"
        cards.append(FigureCard("Made right, made wrong", both, "exact"))
    return Cards(cards)


def _groups(diff: ModelDiff) -> Block:
    columns = [label("people as they are"), figure("people"), share("selected, A"), share("B"), shown("change")]
    columns += [shown("95 % interval"), figure("lost"), figure("gained"), shown("mean k"), share("k rose for")]
    rows = []
    for group in diff.groups:
        change, ends = _change(group.selection_change, share=True)
        selected = (group.selection_before, group.selection_after, change or "–", ends or "under 10 people")
        more = (group.lost, group.gained, _change(group.k_change, share=False)[0], group.rose)
        rows.append((f"{group.attribute}: {group.group}", group.people, *selected, *more))
    kept = range(10) if diff.changed else (0, 1, 8, 9)
    return TableBlock([columns[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _person(rank: int, shift: PersonShift) -> PersonCard:
    facts = [
        ("span of the twins' scores", f"{number(shift.span_before, 3)} → {number(shift.span_after, 3)}"),
        ("own score", f"{number(shift.score_before, 3)} → {number(shift.score_after, 3)}"),
    ]
    if shift.decision_before is not None:
        facts.append(("own decision", f"{shift.decision_before} → {shift.decision_after}"))
    facts += [("lowest in B, as", shift.worst), ("highest in B, as", shift.best)]
    return PersonCard(
        id=f"person-{rank}",
        rank=rank,
        k=f"k {shift.k_before} → {shift.k_after}",
        bits="",
        own=", ".join(shift.own.values()),
        place=shift.place,
        tags=("flips now",) if shift.flips_after and not shift.flips_before else (),
        ends=(),
        facts=facts,
    )


def _layers(diff: ModelDiff) -> PagePart:
    most = f"; of the later ones, layer {diff.adds_most} adds most" if diff.adds_most else ""
    where = f"In layer {diff.parted}, the first whose outputs differ by more than rounding{most}."
    where = "Nowhere: all layers put out the same, but for rounding." if diff.parted is None else where
    widest = max((layer.relative for layer in diff.layers), default=0.0) or 1.0
    columns = [
        label("layer"),
        figure("width"),
        shown("difference"),
        share("of A's output", 2),
        label(""),
        shown("adds"),
    ]
    rows = [
        (
            f"{layer.layer} (output)" if layer is diff.layers[-1] else str(layer.layer),
            layer.width,
            f"{layer.distance:.3g}",
            layer.relative,
            Bar(layer.relative / widest),
            "from nothing" if layer.rise > 1000 else signed(layer.rise, 2),
        )
        for layer in diff.layers
    ]
    parted = frozenset(i for i, layer in enumerate(diff.layers) if layer.layer == diff.parted)
    lead = f"{where} Mean absolute difference over people and neurons, and how much a layer adds to those before it."
    return PagePart(
        "layers", "Where the outputs part", [Paragraph(lead, tone="lead"), TableBlock(columns, rows, marked=parted)]
    )


def write_diff(diff: ModelDiff, path: Path) -> None:
    with on_disk(f"cannot write {str(path)!r}", "choose another --html"):
        write_whole(path, render_page(diff_page(diff)).encode())


def _shift(shift: Shift) -> tuple[Text, ...]:
    """Name, before, after, change, interval and verdict, as people read them."""
    show: Callable[[float | None], str] = (
        percent if shift.share else partial(number, digits=0 if shift.name == "k_max" else 2)
    )
    change, ends = _change(shift.change, share=shift.share)
    exact = shift.change is not None and shift.change.low == shift.change.high
    verdict = "" if shift.verdict == "–" else Tag(shift.verdict)
    return shift.words, show(shift.before), show(shift.after), change, "" if exact else ends, verdict


def _change(change: PairedChange | None, *, share: bool) -> tuple[str, str]:
    """A change and its interval; nothing where it is not known."""
    if change is None:
        return "", ""
    scale, digits = (100, 1) if share else (1, 2)
    said = [
        "0" if round(scale * end, digits) == 0 else signed(scale * end, digits)
        for end in (change.value, change.low, change.high)
    ]
    return said[0] + (" pts" if share else ""), f"{said[1]} to {said[2]}"
