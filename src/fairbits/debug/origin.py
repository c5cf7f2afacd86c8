"""Is it the data or the training? A verdict from measurements, each with the side that it points to."""

from __future__ import annotations

from collections import Counter

from fairbits.debug.records import Evidence, LabelBits, Origin, Retrained, Side, Verdict

#: The first layer has won the vote when it has this share of the cases.
MAJORITY = 0.5
#: Another seed gives "about the same" mean k within this share of the distance to 1.
SAME = 0.5


def judge(
    first_layer_share: float | None,
    labels: LabelBits | None,
    retrained: tuple[Retrained, ...] = (),
    *,
    accuracy: float | None,
    alike: bool = False,
) -> Origin:
    """Weigh what there is: the side that more of the evidence points to, or "mixed" where it is even.

    Where the twins of all cases are treated ``alike`` there is nothing whose origin could be asked for.

    Parameters
    ----------
    first_layer_share
        Share of the distance that the first layer makes; None where it is not known.
    labels
        Positions of classes or values, (n,).
    retrained
        Figures of networks that were trained anew.
    accuracy
        Accuracy of the model; None where it is not known.
    alike
        Whether the twins of all cases are treated alike, so that there is nothing to explain.

    Returns
    -------
    Origin
        The verdict with its evidence.
    """
    if alike:
        return Origin("none", (), first_layer_share, labels, retrained)
    evidence = []
    if first_layer_share is not None:
        evidence.append(_of_layers(first_layer_share))
    if labels is not None:
        evidence.append(_of_labels(labels))
    evidence += [_of_seed(one) if one.how == "other seed" else _of_blind(one, accuracy, labels) for one in retrained]
    sides = Counter(one.points_to for one in evidence if one.points_to is not None)
    if not sides:
        return Origin("unknown", tuple(evidence), first_layer_share, labels, retrained)
    data, training = sides["data"], sides["training"]
    verdict: Verdict = "mixed" if data == training else "data" if data > training else "training"
    return Origin(verdict, tuple(evidence), first_layer_share, labels, retrained)


def _of_layers(share: float) -> Evidence:
    if share > MAJORITY:
        text = f"the first layer amplifies its input most in {share:.0%} of the cases"
        return Evidence("layers", "data", text)
    text = f"a layer after the first amplifies most in {1 - share:.0%} of the cases"
    return Evidence("layers", "training", text)


def _of_labels(labels: LabelBits) -> Evidence:
    bits = labels.bits
    interval = f"{bits.value:.4f} bits a row ({bits.low:.4f} to {bits.high:.4f})"
    if labels.present:
        return Evidence("labels", "data", f"given the rest, the protected attributes tell {interval} about the label")
    text = f"given the rest, the protected attributes tell nothing measurable about the label: {interval}"
    return Evidence("labels", "training", text)


def _of_seed(other: Retrained) -> Evidence:
    text = f"the same shape trained from another seed has a mean k of {other.k_rows:.2f} on rows of the table"
    gone = other.k_rows - 1 < (1 - SAME) * (other.k_rows_before - 1)
    known = f", where this network has {other.k_rows_before:.2f}"
    return Evidence("other seed", "training" if gone else "data", text + known)


def _of_blind(blind: Retrained, accuracy: float | None, labels: LabelBits | None) -> Evidence:
    """What the columns are worth to a network; it repeats what the labels say, so it counts only without those."""
    loss = 0.0 if accuracy is None else accuracy - blind.accuracy
    text = f"trained without the protected columns it has a mean k of {blind.k_mean:.2f} and an accuracy of"
    side: Side | None = None if labels is not None else "data" if loss > 0.005 else "training"
    known = "" if accuracy is None else f", where this network has {accuracy:.1%}"
    return Evidence("without protected", side, f"{text} {blind.accuracy:.1%}{known}")
