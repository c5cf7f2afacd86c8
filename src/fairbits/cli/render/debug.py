"""What `fairbits debug` shows on a terminal: layers, neurons, attributes, and the shares of data and training."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairbits.cli import waited
from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless, quality_lines
from fairbits.debug import Attribution, Candidate, DebugResult, NeuronEffect, NeuronSets, Origin
from fairbits.domain import shortened, unsigned_zero
from fairbits.measure import symbol_of
from fairbits.store import Run

_BAR = 20
#: Combinations of attributes that a terminal shows; debug.json has all of them.
_MAX_SUBSETS = 6
#: Trees and splits that a terminal shows; layers.parquet and neurons.parquet have all of them.
_MOST_TREES = 8


def show(run: Run, found: DebugResult) -> None:
    """Print layers, neurons, attributes and the origin."""
    console = Console(highlight=False)
    for block in _blocks(run, found):
        console.print(block)


def _blocks(run: Run, found: DebugResult) -> Iterator[RenderableType]:
    yield _headline(run, found)
    if found.units == "trees":
        yield from _trees(found)
    elif found.layers:
        title = "\nLayers: how far apart twins are (δ), and how much a layer widens that (ρ)"
        yield Text(title + (", by the paper's rule" if found.rule == "paper" else ""), style="bold")
        yield _layers(found)
        yield _vote(found)
    shown = [] if found.units == "trees" else found.neurons
    for layer in sorted({one.layer for one in shown}, key=lambda one: (one != found.suspect, one)):
        yield from _neurons(found, layer)
    if found.sets is not None and found.sets.curve:
        yield _sets(found.sets)
    if found.attribution is not None:
        yield _heading(found.attribution)
        yield _shares(found.attribution)
        yield from _subsets(found.attribution)
    yield _origin(found.origin)
    for note in found.notes:
        yield Padding(Text(f"Note: {harmless(note)}", style="dim"), (1, 0, 0, 0))
    kept = [name for name in ("layers.parquet", "neurons.parquet", "debug.json") if (run.folder / name).is_file()]
    yield Text(f"\nKept in {run.folder}: {', '.join(kept)}", style="dim")


def _headline(run: Run, found: DebugResult) -> Text:
    rest = len(found.cases) - found.worst
    chosen = f"{found.worst:,} worst, {rest:,} at random" if len(found.cases) < len(run) else "all there are"
    text = Text(f"{harmless(found.subject)}", style="bold")
    text.append(f" · {len(found.cases):,} of {len(run):,} cases ({chosen})\n", style="not bold")
    text.append(f"seed {found.seed} · ε = {found.epsilon:g} · {found.m} twins · {waited()}\n", style="dim")
    for line in quality_lines(run.manifest.get("quality")):
        text.append(f"{line}\n", style="dim")
    text.append("\n")
    known = f" Accuracy on the table: {found.accuracy:.1%}." if found.accuracy is not None else ""
    flips = "" if found.id_rate is None else f" Decisions flip for {found.id_rate:.0%}."
    bits = f" Mean Q1: {float(found.figure.mean()):.2f}." if found.measure == "q_1" else ""
    text.append(f"Mean k: {found.k_mean:.2f}.{bits}{flips}{known}", style="not bold")
    return text


def _table(*columns: str, left: Sequence[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return table


def _layers(found: DebugResult) -> Table:
    table = _table("layer", "width", "δ", "ρ", "ρ 5–95 %", "votes", "", left=("layer", ""))
    for one in found.layers:
        last = one.layer == len(found.layers) - 1
        name = "input" if one.layer == 0 else f"{one.layer} (output)" if last else str(one.layer)
        spread, votes, growth = "", "", ""
        if one.rho is not None and one.rho_quantiles is not None:
            growth = _signed(one.rho)
            spread = f"{_signed(one.rho_quantiles[0])} to {_signed(one.rho_quantiles[-1])}"
            votes = f"{one.votes / len(found.cases):.0%}"
        mark = "← suspect" if one.layer == found.suspect else ""
        style = "bold" if mark else ""
        table.add_row(name, str(one.width), _short(one.delta), growth, spread, votes, mark, style=style)
    return table


def _trees(found: DebugResult) -> Iterator[RenderableType]:
    yield Text("\nTrees: how far apart they put twins (δ), how much they widen spans (ρ)", style="bold")
    total = max(1, len(found.cases))
    table = _table("tree", "leaves", "δ", "ρ", "votes", "", left=("",))
    looking = [one for one in found.layers if one.delta > 0]
    for one in sorted(looking, key=lambda one: (-one.votes, -(one.rho or 0.0), one.layer))[:_MOST_TREES]:
        mark = "← suspect" if one.layer == found.suspect else ""
        cells = str(one.layer), str(one.width), _short(one.delta), _signed(one.rho or 0.0), f"{one.votes / total:.0%}"
        table.add_row(*cells, mark, style="bold" if mark else "")
    yield table
    yield Text(f"{len(looking)} of {len(found.layers)} trees tell twins of these cases apart.\n")
    yield Text("Splits and trees that lower mean k most when held", style="bold")
    rows = _best(found.best(count=_MOST_TREES))
    if not rows:
        yield Text("None does within the accuracy that must be kept.\n")
        return
    table = _table("tree", "goes left", "held", "ACD", "accuracy", "mean k", left=("goes left", "held"))
    short = {"always left": "left", "always right": "right", "the other way": "other", "left out": "out"}
    for split, held in rows:
        accuracy = "not known" if held.accuracy is None else f"{held.accuracy:.1%}"
        k, acd = f"{found.k_reported:.2f} → {held.k_reported:.2f}", "" if split.acd is None else _signed(split.acd, 3)
        table.add_row(
            str(split.layer or "all"),
            Text(harmless(shortened(split.label, 28))),
            short[held.statistic],
            acd,
            accuracy,
            k,
        )
    yield table
    yield Text("Chosen on one half of the cases, reported on the other.\n", style="dim")


def _vote(found: DebugResult) -> Text:
    """How sure the vote is, and the influence."""
    vote = found.vote
    if vote is None or vote.share is None or vote.influence is None:
        return Text("")
    share, influence = vote.share, vote.influence
    words = (
        f"Layer {vote.suspect}: {share.value:.0%} of the votes ({share.low:.0%} to {share.high:.0%}); it wins in "
        f"{vote.certainty:.0%} of resamples of the cases. Influence (mean of each "
        f"case's largest ρ): {influence.value:.2f} ({influence.low:.2f} to {influence.high:.2f})."
    )
    if vote.runner_up is not None and vote.runner_up_share is not None:
        words += f" Runner-up: layer {vote.runner_up} with {vote.runner_up_share.value:.0%}."
    return Text(textwrap.fill(words, 78) + "\n")


def _sets(found: NeuronSets) -> Text:
    """The smallest set, and how the effect grows with the size."""
    text = Text(f"Sets of neurons: how many explain most (over {found.most:.0%}) of the bits\n", style="bold")
    grown = ", ".join(f"{len(one.neurons)}: {one.explained.value:.0%}" for one in found.curve)
    text.append(textwrap.fill(f"Explained by size: {grown}.", 78) + "\n", style="not bold")
    if found.minimal is None:
        words = "No set that keeps the accuracy explains most of the bits."
    else:
        one = found.minimal
        named = ", ".join(f"{do.neuron} of layer {do.layer + 1}" for do in one.neurons)
        share = one.explained
        words = (
            f"Smallest set found: neuron {named}. Held together they explain {share.value:.0%} of the bits "
            f"({share.low:.0%} to {share.high:.0%}) of cases that chose none of them."
        )
    text.append(textwrap.fill(words, 78) + "\n", style="not bold")
    return text


def _neurons(found: DebugResult, layer: int) -> Iterator[RenderableType]:
    title = f"Neurons of layer {layer}" + (", the suspect" if layer == found.suspect else "")
    yield Text(title, style="bold")
    positive, negative = (_remedies(found.top(sign, layer=layer)) for sign in (+1, -1))
    shown = {(one.neuron, held.value) for one, held in (*positive, *negative)}
    others = [row for row in _best(found.best(layer=layer)) if (row[0].neuron, row[1].value) not in shown]
    k = symbol_of(found.measure)
    lists = (
        (f"Positive: activating them lowers {k}, so hold them on", positive),
        (f"Negative: activating them raises {k}, so switch them off", negative),
        (f"Whatever the sign: held at the value with the lowest mean {k}", others),
    )
    for words, rows in lists:
        if rows:
            yield Text(words)
            yield _neuron_table(found, rows)
    if any(rows for _, rows in lists):
        how = (
            "All cases, as in the paper."
            if found.rule == "paper"
            else "One half of the cases ranks, the other reports."
        )
        words = f"ACD: {k} on (mean) less {k} off (min), as a share of {k}, with its 95 % interval. {how}\n"
        yield Text(words, style="dim")
    else:
        yield Text(f"No neuron that is held on or off changes {k} within the accuracy that must be kept.\n")


_Row = tuple[NeuronEffect, Candidate]


def _remedies(neurons: Sequence[NeuronEffect]) -> list[_Row]:
    return [(one, one.remedy) for one in neurons if one.remedy is not None]


def _best(neurons: Sequence[NeuronEffect]) -> list[_Row]:
    return [(one, one.best) for one in neurons if one.best is not None]


def _neuron_table(found: DebugResult, rows: Sequence[_Row]) -> Table:
    bits = found.measure == "q_1"
    table = _table("neuron", "ACD", "95 %", "hold at", "", "accuracy", f"mean {symbol_of(found.measure)}", left=("",))
    before = float(found.figure[1::2].mean()) if bits and len(found.figure) > 1 else found.k_reported
    for one, held in rows:
        accuracy = "not known"
        if held.accuracy is not None and found.accuracy is not None:
            change = unsigned_zero(f"{100 * (held.accuracy - found.accuracy):+.1f}")
            accuracy = f"{held.accuracy:.1%} ({change})"
        k = f"{before:.2f} → {held.reported:.2f}"
        acd = "" if one.acd is None else _signed(one.acd, 2)
        within = ""
        if one.acd_low is not None and one.acd_high is not None:
            within = f"{one.acd_low:+.2f}…{one.acd_high:+.2f}"
        table.add_row(str(one.neuron), acd, within, _short(held.value), held.statistic, accuracy, k)
    return table


def _heading(found: Attribution) -> Text:
    total = found.subsets[-1]
    text = Text("Attributes: where the bits come from\n", style="bold")
    text.append(f"A case uses {total.q_inf:.2f} bits (Q∞) and {total.q_1:.2f} bits (Q1) on average.", style="not bold")
    return text


def _shares(found: Attribution) -> Table:
    alone = {subset.attributes[0]: subset for subset in found.subsets if len(subset.attributes) == 1}
    total = sum(found.q_inf.values())
    table = _table("attribute", "alone", "Shapley", "share", "", left=("attribute", ""))
    for name in sorted(found.attributes, key=lambda name: -found.q_inf[name]):
        share = found.q_inf[name] / total if total > 0 else 0.0
        bar = Text("█" * max(0, round(_BAR * share)), style="cyan")
        cells = (f"{alone[name].q_inf:.2f}", f"{found.q_inf[name]:.2f}", unsigned_zero(f"{share:.0%}"))
        table.add_row(Text(harmless(name)), *cells, bar)
    return table


def _subsets(found: Attribution) -> Iterator[RenderableType]:
    together = [subset for subset in found.subsets if 1 < len(subset.attributes) < len(found.attributes)]
    if not together:
        return
    words = ", ".join(f"{' and '.join(s.attributes)} {s.q_inf:.2f}" for s in together[:_MAX_SUBSETS])
    more = f", … ({len(together)} in all)" if len(together) > _MAX_SUBSETS else ""
    yield Text(f"Together: {harmless(words)}{more}\n")


def _origin(origin: Origin) -> Text:
    text = Text("Data or training?\n", style="bold")
    text.append(textwrap.fill(harmless(origin.words), 78) + "\n", style="not bold")
    for one in origin.shares if len(origin.shares) > 1 else ():
        own = "" if one.own is None else f"; this model agrees with the others by {one.own.value:.0%}"
        words = (
            f"{harmless(' and '.join(one.attributes))}: {one.shared.value:.0%} shared ({one.shared.low:.0%} to "
            f"{one.shared.high:.0%}), {one.effect.value:.3f} of score{own}"
        )
        text.append(textwrap.fill(words, 78, initial_indent="• ", subsequent_indent="  ") + "\n", style="not bold")
    if origin.known:
        where = "people that no training has seen" if origin.held_out else "rows of the table"
        words = f"{origin.trainings} trainings, {origin.people:,} {where}."
        text.append(words + "\n", style="not bold dim")
    if origin.labels is not None:
        bits = origin.labels.bits
        carried = "tell" if origin.labels.present else "tell nothing measurable:"
        words = (
            f"Labels: given the rest, the protected attributes {carried} {bits.value:.4f} bits a row "
            f"({bits.low:.4f} to {bits.high:.4f}) about the label."
        )
        text.append(textwrap.fill(words, 78) + "\n", style="not bold")
    text.rstrip()
    return text


def _signed(value: float, digits: int = 2) -> str:
    return f"{value:+.{digits}f}" if abs(value) < 1e4 else f"{value:+.1e}"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e4 else f"{value:.1e}"
