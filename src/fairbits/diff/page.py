"""A comparison of two models as one page."""

from __future__ import annotations

from collections.abc import Iterator
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
    figure,
    label,
    paragraphs,
    share,
    shown,
)
from fairbits.diff.pairs import Changed, GroupShift, ModelDiff, PairedChange, PersonShift, Shift
from fairbits.errors import OptionError
from fairbits.report import render_page
from fairbits.store import write_whole
from fairbits.text import joined, number, percent, signed

_MINUS = str.maketrans("-", "−")


def render_diff(found: ModelDiff) -> str:
    """The whole page."""
    return render_page(diff_page(found))


def diff_page(found: ModelDiff) -> Page:
    """What is said of two models."""
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
    people = (
        f"All {number(found.rows)}"
        if found.rows == found.rows_total
        else f"{number(found.rows)} of {number(found.rows_total)}"
    )
    yield Paragraph(
        f"{people} people of the table, each under all {number(found.m)} combinations of "
        f"{joined(list(found.protected))}, asked of both models. Scores of the same twin differ by "
        f"{found.score_distance:.3g} on average, at most by {found.score_distance_max:.3g}.",
        tone="lead",
    )
    yield from paragraphs((f"Note: {line}" for line in found.notes), "note")
    sides = []
    for name, side in (("A", found.a), ("B", found.b)):
        digest = (Code(f"sha256 {side.sha256}"),) if side.sha256 else ()
        known = (f"{side.model}, identity {side.identity} ", *digest)
        sides.append(
            [
                Heading(f"{name}: {side.name}"),
                *paragraphs(side.quality.lines(), "small"),
                Paragraph(known, tone="small"),
            ]
        )
    yield Columns(sides)


def _parts(found: ModelDiff) -> Iterator[PagePart]:
    exact = "exact" if found.rows == found.rows_total else "statistical"
    lead = (
        "Everybody is compared with themselves: the change is B minus A ",
        Tag(exact),
        ", its 95 % interval says how much it would move with other people drawn like these ",
        Tag("statistical"),
    )
    columns = [label("figure"), *(shown(head) for head in ("A", "B", "change", "95 % interval")), label("")]
    rows = [(*line, "" if verdict == "–" else Tag(verdict)) for *line, verdict in map(shift_words, found.shifts)]
    held = "Open: the interval holds 0, so these people do not tell."
    yield PagePart(
        "figures",
        "What changed",
        [Paragraph(lead, tone="lead"), TableBlock(columns, rows), Paragraph(held, tone="small")],
    )
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
    commands = [Commands([found.command])] if found.command else []
    yield PagePart("again", "Reproduce", [*commands, Paragraph(about, tone="small")])


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
        change, ends, k = group_words(one)
        selected = (one.selection_before, one.selection_after, change or "–", ends or "under 10 people")
        rows.append((f"{one.attribute}: {one.group}", one.people, *selected, one.lost, one.gained, k, one.rose))
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
    where = "Nowhere: all layers put out the same, but for rounding."
    if found.parted is not None:
        most = f"; of the later ones, layer {found.adds_most} adds most" if found.adds_most else ""
        where = f"In layer {found.parted}, the first whose outputs differ by more than rounding{most}."
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
    """Write the page, whole."""
    try:
        write_whole(path, render_diff(found).encode())
    except OSError as error:
        raise OptionError(f"cannot write {str(path)!r}: {error.strerror or error}; choose another --html.") from None


def shift_words(shift: Shift) -> tuple[str, str, str, str, str, str]:
    """Name, before, after, change, interval and verdict, as people read them."""
    change = shift.change
    plain = "" if change is None else _signed(change.value, share=shift.share)
    between = "" if change is None or change.low == change.high else _between(change, share=shift.share)
    return shift.words, _value(shift.before, shift), _value(shift.after, shift), plain, between, shift.verdict


def group_words(one: GroupShift) -> tuple[str, str, str]:
    """The change of the selection rate, its interval, and the change of mean k."""
    selection = one.selection_change
    change = "" if selection is None else _signed(selection.value, share=True)
    between = "" if selection is None else _between(selection, share=True)
    return change, between, _signed(one.k_change.value, share=False)


def _value(value: float | None, shift: Shift) -> str:
    if value is None:
        return "–"
    if shift.share:
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if shift.name == "k_max" else f"{value:,.2f}"


def _signed(value: float, *, share: bool) -> str:
    text = f"{100 * value:+.1f}" if share else f"{value:+,.2f}"
    text = "0" if float(text.replace(",", "")) == 0 else text
    return text.translate(_MINUS) + (" pts" if share else "")


def _between(change: PairedChange, *, share: bool) -> str:
    low, high = (_signed(end, share=share).removesuffix(" pts") for end in (change.low, change.high))
    return f"{low} to {high}"
