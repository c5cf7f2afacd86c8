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
from fairbits.errors import OptionError
from fairbits.report import render_page
from fairbits.store import write_whole
from fairbits.text import joined, number, percent, signed


def diff_page(found: ModelDiff) -> Page:
    return Page(
        subject=f"{found.a.name} → {found.b.name}",
        command="diff",
        title=f"{found.a.name} and {found.b.name}: two models",
        sentence=found.sentence.replace(" %", "\N{NO-BREAK SPACE}%"),
        opening=tuple(_opening(found)),
        parts=tuple(_parts(found)),
        made_from="both models",
    )


def _opening(found: ModelDiff) -> Iterator[Block]:
    total = number(found.rows_total)
    people = f"All {total}" if found.rows == found.rows_total else f"{number(found.rows)} of {total}"
    yield Paragraph(
        f"A is {found.a.name}, B is {found.b.name}. {people} people of the table, each under all "
        f"{number(found.m)} combinations of {joined(list(found.protected))}, asked of both models. Scores of the same "
        f"twin differ by {found.score_distance:.3g} on average, at most by {found.score_distance_max:.3g}.",
        tone="lead",
    )
    yield from paragraphs((f"Note: {line}" for line in found.notes), "note")


def _sides(found: ModelDiff) -> Block:
    sides = []
    for name, side in (("A", found.a), ("B", found.b)):
        digest = (Code(f"sha256 {side.sha256}"),) if side.sha256 else ()
        known = Paragraph((f"{side.model}, identity {side.identity} ", *digest), tone="small")
        sides.append([Heading(f"{name}: {side.name}"), *paragraphs(side.quality.lines(), "small"), known])
    return Columns(sides)


def _parts(found: ModelDiff) -> Iterator[PagePart]:
    exact = "exact" if found.rows == found.rows_total else "statistical"
    lead = (
        "Everybody is compared with themselves: the change is B minus A ",
        Tag(exact),
        ", its 95 % interval says how much it would move with other people drawn like these ",
        Tag("statistical"),
    )
    table = TableBlock(
        [label("figure"), *(shown(head) for head in ("A", "B", "change", "95 % interval")), label("")],
        [_shift(one) for one in found.shifts],
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
    yield PagePart("models", "The two models", [_sides(found)])
    if found.changed:
        yield PagePart("decisions", "Decisions that changed", [_changed(found.changed)])
    yield PagePart("groups", "Groups", [_groups(found)])
    rose = f"k rose for {number(found.k_rose)} people and fell for {number(found.k_fell)} of {number(found.rows)}."
    first = (
        f" The first {len(found.people)}, by classes gained, then by the span that was added:" if found.people else ""
    )
    worse: list[Block] = [Paragraph(rose + first, kind="exact", tone="lead")]
    if found.people:
        worse.append(People([_person(i, one) for i, one in enumerate(found.people, 1)], found.changed is not None))
    yield PagePart("worse", "Who got worse", worse)
    if found.layers:
        yield _layers(found)
    about = (
        f"ε = {found.epsilon:g}, {found.partition} partition, seed {found.seed}. Layers as in CRADLE (Pham et al., "
        "ICSE 2019). A decision that changed is not by itself a harm, and one that stayed is not by itself right."
    )
    yield PagePart(
        "again", "Reproduce", [*([Commands([found.command])] if found.command else []), Paragraph(about, tone="small")]
    )


def _changed(changed: Changed) -> Block:
    rate = changed.rate
    drawn = f"{percent(rate.value)}; {percent(rate.low)} to {percent(rate.high)} of people drawn like them"
    cards = [
        FigureCard("Different decision", number(changed.people), "exact", drawn),
        FigureCard("Favourable lost", number(changed.lost), "exact"),
        FigureCard("Favourable gained", number(changed.gained), "exact"),
    ]
    if changed.made_right is not None:
        both = f"{number(changed.made_right)} against {number(changed.made_wrong)}"
        cards.append(FigureCard("Made right, made wrong", both, "exact"))
    return Cards(cards)


def _groups(found: ModelDiff) -> Block:
    columns = [label("people as they are"), figure("people"), share("selected, A"), share("B"), shown("change")]
    columns += [shown("95 % interval"), figure("lost"), figure("gained"), shown("mean k"), share("k rose for")]
    rows = []
    for one in found.groups:
        change, ends = _change(one.selection_change, share=True)
        selected = (one.selection_before, one.selection_after, change or "–", ends or "under 10 people")
        more = (one.lost, one.gained, _change(one.k_change, share=False)[0], one.rose)
        rows.append((f"{one.attribute}: {one.group}", one.people, *selected, *more))
    kept = range(10) if found.changed else (0, 1, 8, 9)
    return TableBlock([columns[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _person(rank: int, one: PersonShift) -> PersonCard:
    facts = [
        ("span of the twins' scores", f"{number(one.span_before, 3)} → {number(one.span_after, 3)}"),
        ("own score", f"{number(one.score_before, 3)} → {number(one.score_after, 3)}"),
    ]
    if one.decision_before is not None:
        facts.append(("own decision", f"{one.decision_before} → {one.decision_after}"))
    facts += [("lowest in B, as", one.worst), ("highest in B, as", one.best)]
    return PersonCard(
        id=f"person-{rank}",
        rank=rank,
        k=f"k {one.k_before} → {one.k_after}",
        bits="",
        own=", ".join(one.own.values()),
        place=one.place,
        tags=("flips now",) if one.flips_after and not one.flips_before else (),
        ends=(),
        facts=facts,
    )


def _layers(found: ModelDiff) -> PagePart:
    most = f"; of the later ones, layer {found.adds_most} adds most" if found.adds_most else ""
    where = f"In layer {found.parted}, the first whose outputs differ by more than rounding{most}."
    where = "Nowhere: all layers put out the same, but for rounding." if found.parted is None else where
    widest = max((layer.relative for layer in found.layers), default=0.0) or 1.0
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
            f"{one.layer} (output)" if one is found.layers[-1] else str(one.layer),
            one.width,
            f"{one.distance:.3g}",
            one.relative,
            Bar(one.relative / widest),
            "from nothing" if one.rise > 1000 else signed(one.rise, 2),
        )
        for one in found.layers
    ]
    parted = frozenset(i for i, one in enumerate(found.layers) if one.layer == found.parted)
    lead = f"{where} Mean absolute difference over people and neurons, and how much a layer adds to those before it."
    return PagePart(
        "layers", "Where the outputs part", [Paragraph(lead, tone="lead"), TableBlock(columns, rows, marked=parted)]
    )


def write_diff(found: ModelDiff, path: Path) -> None:
    try:
        write_whole(path, render_page(diff_page(found)).encode())
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r}: {error.strerror or error}; choose another --html.") from None


def _shift(one: Shift) -> tuple[Text, ...]:
    """Name, before, after, change, interval and verdict, as people read them."""
    show: Callable[[float | None], str] = (
        percent if one.share else partial(number, digits=0 if one.name == "k_max" else 2)
    )
    change, ends = _change(one.change, share=one.share)
    exact = one.change is not None and one.change.low == one.change.high
    verdict = "" if one.verdict == "–" else Tag(one.verdict)
    return one.words, show(one.before), show(one.after), change, "" if exact else ends, verdict


def _change(found: PairedChange | None, *, share: bool) -> tuple[str, str]:
    """A change and its interval; nothing where it is not known."""
    if found is None:
        return "", ""
    scale, digits = (100, 1) if share else (1, 2)
    said = [
        "0" if round(scale * end, digits) == 0 else signed(scale * end, digits)
        for end in (found.value, found.low, found.high)
    ]
    return said[0] + (" pts" if share else ""), f"{said[1]} to {said[2]}"
