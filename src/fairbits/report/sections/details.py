"""The folded part of the page: severity and the search, each attribute's share, the inside of the model, paperwork.

Where the bits come from: attributes, layers and neurons or trees and splits, data or training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fairbits.blocks import (
    Bar,
    Block,
    Columns,
    Drawing,
    Facts,
    Fold,
    Heading,
    PagePart,
    Paragraph,
    People,
    TableBlock,
    TableColumn,
    Text,
    between,
    change,
    figure,
    label,
    paragraphs,
    share,
    shown,
    table_by,
    whole_percent,
)
from fairbits.debug import Attribution, DebugResult, LayerEffect, NeuronEffect, Vote
from fairbits.measure import Noise, symbol_of
from fairbits.report.record import Near, ReportData
from fairbits.report.sections.paperwork import file_blocks, regulations_fold, reproduction_blocks
from fairbits.report.sections.people import case_card, who_blocks
from fairbits.report.sections.treatment import near_table
from fairbits.store import Run, record_from_json
from fairbits.text import from_to, joined, number, percent, signed

#: Sets of attributes, trees, splits and neurons in tables; the run's files have all of them.
MAX_SETS, MAX_TREES, MAX_SPLITS, MAX_NEURONS = 12, 10, 10, 12
#: What is said of a model that has nothing inside, such as a logistic regression.
ONE_LAYER = "One layer leads from the inputs straight to the score: there is no layer in between to look into."
_RULES = {
    "code": "By the rule of the paper's public code: ρ says how much a hidden layer widens the distance between twins over "
    "the widest hidden layer before it. The suspect layer does so most in the largest share of cases.",
    "text": "By the paper's Algorithm 2 to the letter: δ is the largest distance between twins over all cases, ρ its growth "
    "over the layers before, of which there is none before the first: so that one is the suspect.",
    "ours": "The suspect is the layer where holding up to three neurons, within the loss of accuracy allowed, takes most "
    "bits away from cases that did not choose them. Beside it: δ, how far apart twins are in units of how far apart people "
    "are; ρ, how much a layer widens that; and each case's vote for the largest ρ.",
}


def folds_of(data: ReportData) -> Iterator[Fold]:
    found = data.debugged
    if found is not None and found.attribution is not None:
        yield Fold(
            "Which attribute: Shapley shares", tuple(attribute_blocks(found.attribution)), name="drivers", kind="exact"
        )
    if found is not None and found.layers:
        yield Fold(inside_title(found), tuple(layer_blocks(found)), name="inside", kind="exact")
    if found is not None:
        yield Fold("Data or training", tuple(origin_blocks(found)), name="origin", kind="statistical")
    if not data.about.blind:
        yield Fold("How many, how severe; the search", tuple(severity_blocks(data)), name="severity")
    yield Fold("Reproduce", tuple(reproduction_blocks(data)), name="reproduce")
    if data.files:
        yield Fold("Files", tuple(file_blocks(data)), name="files")


def detail_blocks(data: ReportData, parts: Iterable[PagePart]) -> tuple[Block, ...]:
    """All folds; the regulations, which point at the others and at the parts of the page, last."""
    folds = tuple(folds_of(data))
    return (*folds, regulations_fold(parts, folds))


def severity_blocks(data: ReportData) -> Iterator[Block]:
    """Rows and cases by the number of their classes, and what the search did."""
    figures, decides = data.searched.figures, not data.about.regression
    cases = (
        f"How many of the {number(figures['cases'])} distinct people found have k classes. A search looks for large "
        "k, so this says nothing about how common they are."
    )
    rows = f"How many of the {number(data.measured.rows)} rows have k classes."
    parts: list[list[Block]] = [[Heading("Rows of the table", data.measured.kind), Drawing("severity-rows", rows)]]
    if data.searched.histogram:
        key = [("orange", "decision flips between twins"), ("grey", "it does not")]
        parts.append(
            [
                Heading("Cases of the search", "lower bound"),
                Drawing("severity-cases", cases, key=key if decides and figures["id_cases"] else []),
            ]
        )
    if len(data.searched.progress) > 2:
        parts.append(
            [
                Heading("The search over time"),
                Drawing("progress", "A curve that still rises at the end asks for a longer search."),
            ]
        )
    yield Columns([*parts, [Heading("What the search did"), Facts(search_facts(figures, decides=decides))]])
    measured, found = dict(data.measured.histogram), {k: (count, ids) for k, count, ids in data.searched.histogram}
    columns: list[tuple[TableColumn | None, Callable[[int], Any]]] = [
        (figure("k"), int),
        (figure("rows"), lambda k: measured.get(k, 0)),
        (figure("cases of the search"), lambda k: found.get(k, (0, 0))[0]),
        (figure("of them flip") if decides else None, lambda k: found.get(k, (0, 0))[1]),
    ]
    yield Fold("As a table", [table_by(sorted({*measured, *found}, reverse=True), columns)])


def search_facts(figures: Mapping[str, Any], *, decides: bool) -> list[tuple[str, Text]]:
    """Facts about the search as pairs of name and value; a regression has no decision that could flip."""

    def seconds(name: str) -> str:
        return "–" if figures.get(name) is None else f"{number(figures[name], 2)} s"

    ends = f"{number(figures.get('k_initial'), 1)}, {number(figures.get('k_final'), 1)}"
    found: list[tuple[str, Text]] = [
        ("strategy", str(figures.get("strategy"))),
        ("people asked about", number(figures.get("evaluations"))),
        ("scores computed", number(figures.get("queries"))),
        ("distinct cases kept", number(figures["cases"])),
        ("cases whose decision flips", number(figures["id_cases"])),
        (f"mean k where {seeds_in_words(figures)} began, ended", ends),
        ("until the first flip", seconds("seconds_to_first_id")),
        ("until 1,000 flips", seconds("seconds_to_1000_id")),
    ]
    return [one for one in found if decides or "flip" not in one[0]]


def seeds_in_words(figures: Mapping[str, Any]) -> str:
    """Whom K_I and K_F are about."""
    finished = figures.get("seeds_finished")
    return "seeds" if not finished else f"{number(finished)} seeds that had their full share of moves"


def search_blocks(run: Run, near: tuple[Near, ...], *, top: int, lines: tuple[str, ...]) -> Iterator[Block]:
    """A search by itself: what it found, the largest k by distance, the worst people, and the paper's own columns."""
    figures = run.summary or {}
    decides = not run.schema.regression
    yield from paragraphs(lines, "small")
    yield from paragraphs(_limits(figures), "small")
    if not figures["cases"]:
        yield Paragraph("No case was found.")
        return
    flips = f", {number(figures['id_cases'])} of them with twins that get a different decision" if decides else ""
    asked = f"{number(figures['evaluations'])} people asked in {number(figures['seconds'], 1)} s of search"
    how = f"{figures['strategy']}, seed {figures['seed']}"
    yield Paragraph(f"{number(figures['cases'])} distinct people kept{flips}; {asked} ({how}).")
    noise = record_from_json(Noise, figures["noise"]) if figures.get("noise") else None
    yield near_table(near, figures["bits_limit"], varies=noise is not None)
    notes = () if noise is None else noise.notes(figures["epsilon"])
    yield from paragraphs((f"Note: {note}" for note in notes), "warning")
    yield People([case_card(case, rank) for rank, case in enumerate(run.worst(top) if top else (), 1)], decides)
    yield Fold("As the paper's tables have it", [_paper_row(figures)])
    most = max((entry["cases"] for entry in figures["top"]), default=1)
    severe = table_by(
        figures["top"],
        [
            (figure("k"), lambda one: one["k"]),
            (figure("cases"), lambda one: one["cases"]),
            (label(""), lambda one: Bar(one["cases"] / most)),
        ],
    )
    yield Fold("How severe", [severe])


def _limits(figures: Mapping[str, Any]) -> Iterator[str]:
    """What kept people real, and what it cost."""
    if figures["rules"]:
        count = len(figures["rules"])
        share = figures["twins_removed"] / max(figures["m"] * figures["evaluations"], 1)
        yield (
            f"{count} rule{'s' if count > 1 else ''} removed {number(figures['twins_removed'])} twins ({percent(share)}) "
            f"and {number(figures['moves_removed'])} moves."
        )
    if figures["min_plausibility"] is not None:
        yield f"Only people of plausibility {figures['min_plausibility']:g} or more."


def _paper_row(figures: Mapping[str, Any]) -> Block:
    """The columns of the paper's first research question."""
    top = [entry["cases"] for entry in figures["top"][:3]]
    cells = [
        (figure("m"), figures["m"]),
        (figure("limit", 2), figures["bits_limit"]),
        (figure("K_I", 2), figures["k_initial"]),
        (figure("cases"), figures["cases"]),
        (figure("K_F", 2), figures["k_final"]),
        (figure("T (s)", 2), figures["seconds_to_k_final"]),
        (figure("Q∞", 2), figures["q_inf_mean_id"]),
        (figure("Q1", 2), figures["q_1_mean_id"]),
        *((figure(f"#K{i + 1}"), top[i] if i < len(top) else None) for i in range(3)),
    ]
    caption = f"K_I, K_F and T are means over {seeds_in_words(figures)}" if figures["seeds"] else ""
    columns, row = zip(*cells, strict=True)
    return TableBlock(columns, [row], caption)


def debug_blocks(found: DebugResult) -> Iterator[Block]:
    """Everything that debugging found: who, then through what, attributes first."""
    drawn = number(len(found.cases) - found.worst)
    flips = "" if found.id_rate is None else f"; the decision flips for {percent(found.id_rate)} of them"
    yield Paragraph(
        f"{number(len(found.cases))} cases were looked at ({number(found.worst)} of the worst, {drawn} drawn at random): "
        f"mean k {number(found.k_mean, 2)}{flips}.",
        tone="lead",
    )
    if found.units != "trees" and _suspect(found):  # the answer first: a terminal has no room for all that follows
        yield Paragraph(_suspect(found))
    if found.who is not None:
        yield Heading("Who, in words", "statistical")
        yield from who_blocks(found.who)
    if found.attribution is not None:
        yield Heading("Which attribute", "exact")
        yield from attribute_blocks(found.attribution)
    yield Heading("Data or training", "statistical")
    yield from origin_blocks(found)
    if found.layers:
        yield Heading(inside_title(found), "exact")
        yield from layer_blocks(found)


def inside_title(found: DebugResult) -> str:
    return "Inside the trees" if found.units == "trees" else "Inside the network"


def attribute_blocks(found: Attribution) -> Iterator[Block]:
    """Shapley shares of the protected attributes, and bits when just some of them vary."""
    alone = {subset.attributes[0]: subset.q_inf for subset in found.subsets if len(subset.attributes) == 1}
    total = sum(found.q_inf.values()) or 1.0
    bits = number(found.subsets[-1].q_inf, 2)
    yield table_by(
        sorted(found.attributes, key=lambda name: -found.q_inf[name]),
        [
            (label("attribute"), str),
            (share("share", 0), lambda name: found.q_inf[name] / total),
            (label(""), lambda name: Bar(found.q_inf[name] / total)),
            (figure("Shapley bits", 2), found.q_inf.get),
            (figure("bits alone", 2), alone.get),
        ],
        f"Decisions about these cases use {bits} bits on average; Shapley shares split them",
    )
    lines = [(" + ".join(one.attributes), one.q_inf, one.q_1) for one in found.subsets if len(one.attributes) > 1]
    if len(lines) > 1:
        yield Fold(
            "Bits when just these vary",
            [TableBlock([label("attributes"), figure("Q∞", 2), figure("Q1", 2)], lines[:MAX_SETS])],
        )


def origin_blocks(found: DebugResult) -> Iterator[Block]:
    """How much of what tells twins apart comes with the data, and how much with this single training."""
    origin = found.origin
    yield Paragraph(origin.words.replace("`", ""))
    if len(origin.shares) > 1:
        yield table_by(
            origin.shares,
            [
                (label("attributes"), lambda one: " and ".join(one.attributes)),
                (share("comes with the data"), lambda one: one.shared.value),
                (label(""), lambda one: Bar(one.shared.value)),
                (between("95 %", percent), lambda one: (one.shared.low, one.shared.high)),
                (share("with the single training"), lambda one: one.single.value),
                (share("this model agrees"), lambda one: None if one.own is None else one.own.value),
            ],
            "Of the differences between twins' scores; intervals over people and trainings",
        )
    if origin.labels is not None:
        bits, carried = origin.labels.bits, "tell" if origin.labels.present else "tell nothing measurable:"
        yield Paragraph(
            f"Given the rest, the protected attributes {carried} {number(bits.value, 4)} bits a row "
            f"({number(bits.low, 4)} to {number(bits.high, 4)}) about the label."
        )
    yield from paragraphs(found.notes, "note")


def layer_blocks(found: DebugResult) -> Iterator[Block]:
    if not has_inside(found):
        yield Paragraph(ONE_LAYER, tone="lead")
    else:
        yield from _trees(found) if found.units == "trees" else _network(found)


def has_inside(found: DebugResult) -> bool:
    """Whether there is anything between the inputs and the score: a hidden layer, or trees."""
    return found.units == "trees" or sum(layer.layer > 0 for layer in found.layers) > 1


def suspects_of(found: DebugResult) -> list[NeuronEffect]:
    """The neurons of the suspect layer; of trees, every split and tree that was held."""
    return [one for one in found.neurons if found.units == "trees" or one.layer == found.suspect]


def foremost(found: DebugResult) -> list[NeuronEffect]:
    """The splits and trees that lower mean k most when they are held."""
    known = (one for one in found.neurons if one.acd is not None and (one.acd_choosing or 0.0) > 0)
    return sorted(known, key=lambda one: -(one.acd_choosing or 0.0))[:MAX_SPLITS]


def split_name(one: NeuronEffect) -> str:
    return f"tree {one.layer}: {one.label}" if one.layer else f"all trees: {one.label}"


def _network(found: DebugResult) -> Iterator[Block]:
    k, neurons = symbol_of(found.measure), suspects_of(found)
    allowed = "" if found.regression else " within the loss of accuracy allowed"
    yield Paragraph(f"{_RULES[found.rule]} {_suspect(found)}", tone="lead")
    yield _layers(found)
    yield Drawing(
        "network",
        f"The suspect layer is framed. Its neurons are coloured by their average causal difference (ACD), {k} with the "
        f"neuron on minus {k} with it off: blue is positive (activating it lowers {k}), orange negative (activating it "
        f"raises {k}), a ring has no pair of values{allowed}.",
        "sideways",
    )
    if not neurons or found.suspect is None:
        return
    yield Paragraph(
        "Point at a neuron of the framed layer, tap it or reach it with the keyboard to read its figures.",
        tone="small hint",
    )
    yield _neurons(found, found.suspect, k)
    for layer in sorted({one.layer for one in found.neurons} - {found.suspect}):
        yield Fold(f"Neurons of layer {layer}", [_neurons(found, layer, k)])
    yield Drawing(
        "curves",
        "Every value that a neuron was held at; it need not go one way. Filled: the accuracy is kept. Dashed: nothing "
        "held.",
        "wide sideways",
    )
    yield from _sets(found)


def _vote(vote: Vote | None) -> str:
    if vote is None or vote.share is None:
        return ""
    share, runner_up, close = vote.share, vote.runner_up_share, "a close" if vote.close else "the"
    second = f"; {close} runner-up is layer {vote.runner_up} with {percent(runner_up.value, 0)}" if runner_up else ""
    return (
        f"Layer {vote.suspect} has {percent(share.value, 0)} of the votes ({percent(share.low, 0)} to "
        f"{percent(share.high, 0)}) and wins in {percent(vote.certainty, 0)} of resamples of the cases{second}."
    )


def _suspect(found: DebugResult) -> str:
    """The suspect in a sentence: its votes, or what holding neurons of it takes away."""
    if found.rule == "code":
        return _vote(found.vote)
    one = next((one for one in found.layers if one.layer == found.suspect), None)
    if one is None or one.explained is None:
        return ""
    share, many = one.explained, "s" if len(one.held) > 1 else ""
    what = f"neuron{many} {joined([str(do.neuron) for do in one.held])}"
    return (
        f"The suspect is layer {one.layer}: holding its {what} takes {percent(share.value, 0)} of the bits away "
        f"({from_to(share.low, share.high, 0)})."
    )


def _layers(found: DebugResult) -> Block:
    total, ours, last = len(found.cases) or 1, found.rule == "ours", found.layers[-1].layer

    def name(one: LayerEffect) -> str:
        return "protected input" if one.layer == 0 else f"{one.layer}{' (output)' * (one.layer == last)}"

    return table_by(
        found.layers,
        [
            (label("layer"), name),
            (figure("width"), lambda one: one.width),
            (figure("δ", 3), lambda one: one.delta),
            (change("ρ"), lambda one: one.rho),
            (
                between("ρ of cases, 5 to 95 %", signed),
                lambda one: one.rho_quantiles and (one.rho_quantiles[0], one.rho_quantiles[-1]),
            ),
            (share("votes of the cases", 0), lambda one: None if one.rho is None else one.votes / total),
            (share("by the paper's code", 0) if ours else None, lambda one: one.votes_code and one.votes_code / total),
            (share("bits gone when held", 0) if ours else None, lambda one: one.explained and one.explained.value),
            (
                between("95 %", whole_percent) if ours else None,
                lambda one: one.explained and (one.explained.low, one.explained.high),
            ),
        ],
        "Layers; the suspect stands out",
        marked=frozenset(i for i, one in enumerate(found.layers) if one.layer == found.suspect),
    )


def _neurons(found: DebugResult, layer: int, k: str) -> Block:
    """Those with the largest effects; values are chosen on one half of the cases."""
    neurons = [one for one in found.neurons if one.layer == layer]
    halves = "chosen on one half of the cases, reported on the other"
    half = halves if found.rule == "ours" else "all cases, as in the paper"
    return table_by(
        sorted(neurons, key=lambda one: -abs(one.acd_choosing or 0.0))[:MAX_NEURONS],
        [
            (label("neuron"), lambda one: str(one.neuron)),
            (change("ACD", 3), lambda one: one.acd),
            (between("95 %", lambda end: signed(end, 3)), lambda one: (one.acd_low, one.acd_high)),
            (shown("best held at"), lambda one: one.best and f"{one.best.value:.3g} ({one.best.statistic})"),
            *_held_columns(found, k),
        ],
        f"Neurons of layer {layer} with the largest effects, of {len(neurons)}; {half}",
    )


def mean_reported(found: DebugResult) -> float:
    """Mean k (or Q1) with nothing held, of the half of the cases that figures are reported on."""
    return float((found.figure[1::2] if len(found.figure) > 1 else found.figure).mean())


def _held_columns(found: DebugResult, k: str) -> list[tuple[TableColumn | None, Callable[[NeuronEffect], Any]]]:
    now = "" if found.accuracy is None else f" (now {percent(found.accuracy)})"
    accuracy = None if found.regression else share(f"accuracy on rows it may have been trained on{now}")
    mean = figure(f"mean {k} (now {number(mean_reported(found), 2)})", 2)
    return [
        (mean, lambda one: one.best and one.best.reported),
        (accuracy, lambda one: one.best and one.best.accuracy),
    ]


def _sets(found: DebugResult) -> Iterator[Block]:
    sets = found.sets
    if sets is None or not sets.curve:
        return
    yield Heading("Sets of neurons")
    if sets.minimal is None:
        yield Paragraph("No set that keeps the accuracy explains most of the bits.")
    else:
        explained = sets.minimal.explained
        held = ", ".join(f"neuron {do.neuron} of layer {do.layer + 1}" for do in sets.minimal.neurons)
        yield Paragraph(
            f"Smallest set found that explains most of the bits: {held}. Held together, they explain "
            f"{percent(explained.value)} ({from_to(explained.low, explained.high)})."
        )
    yield table_by(
        sets.curve,
        [
            (figure("neurons held together"), lambda one: len(one.neurons)),
            (share("bits explained"), lambda one: one.explained.value),
            (label(""), lambda one: Bar(one.explained.value)),
            (between("95 %", percent), lambda one: (one.explained.low, one.explained.high)),
        ],
        "Chosen on one half of the cases, reported on the other",
    )


def _trees(found: DebugResult) -> Iterator[Block]:
    yield Paragraph(
        "δ is the most that a tree adds to one twin and not to another; the suspect, in orange, widens the span of "
        "scores most in the largest share of cases, trees in blue in some.",
        tone="lead",
    )
    total = len(found.cases) or 1
    looking = sum(one.delta > 0 for one in found.layers)
    ranked = sorted(found.layers, key=lambda tree: (-tree.votes, -tree.delta, tree.layer))[:MAX_TREES]
    yield table_by(
        ranked,
        [
            (label("tree"), lambda tree: str(tree.layer)),
            (figure("leaves"), lambda tree: tree.width),
            (figure("δ", 3), lambda tree: tree.delta),
            (change("ρ"), lambda tree: tree.rho),
            (share("votes of the cases", 0), lambda tree: tree.votes / total),
        ],
        f"{looking} of {len(found.layers)} trees tell twins of these cases apart; the suspect stands out",
        marked=frozenset(i for i, tree in enumerate(ranked) if tree.layer == found.suspect),
    )
    yield Drawing("network", size="sideways")
    known = foremost(found)
    if not known:
        yield Paragraph("No split or tree that is held lowers mean k within the accuracy that must be kept.")
        return
    yield table_by(
        known,
        [
            (label("tree"), lambda one: str(one.layer or "all")),
            (label("goes left"), lambda one: one.label),
            (change("ACD", 3), lambda one: one.acd),
            (label("best held"), lambda one: one.best and one.best.statistic),
            *_held_columns(found, symbol_of(found.measure)),
        ],
        "What mean k loses, as a share (ACD), when everybody takes the way that most rows take at one split, or wherever "
        "the same question is asked (all trees), or when a tree is left out",
    )
