"""Boosted oblivious trees over small whole numbers: learners that are quick where people are few.

An oblivious tree asks one question per level, the same on every branch (Kohavi 1994; Prokhorenkova et al. 2018), so a
level is one pass over the people and one over the histogram. Gradients and curvatures are those of Friedman (2001) for
squares, and of the logistic loss for one group (a logit) or several (a soft maximum).
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from fairbits.engine import compiled, linked

#: Losses: squares, a logit, a soft maximum.
SQUARES, LOGIT, SOFTMAX = 0, 1, 2


@compiled
def boost_trees(bins, wanted, n_fit, n_bins, n_outputs, loss, n_trees, depth, rate, ridge, patience, splits, leaves):
    """Grow trees on the first people, and keep as many as serve the others best."""
    n, width = bins.shape
    sums = np.zeros((n_outputs, n))
    slope, curvature = np.zeros(n_fit), np.ones(n_fit)
    leaf = np.zeros(n, dtype=np.int32)
    histogram, before_level = np.zeros((2**depth, width, n_bins, 2)), np.zeros((2**depth, width, n_bins, 2))
    best_loss, best_trees = _held_out(sums, wanted, n_fit, loss), 0
    for tree in range(n_trees):
        before = sums.copy()
        for output in range(n_outputs):
            _slopes(before, wanted, loss, output, slope, curvature)
            leaf[:] = 0
            for level in range(depth):
                _histogram(bins, leaf, slope, curvature, level, histogram, before_level)
                f, b = _question(histogram, 2**level, ridge)
                splits[tree, output, level, 0], splits[tree, output, level, 1] = f, b
                for i in range(n):
                    leaf[i] = 2 * leaf[i] + (1 if bins[i, f] > b else 0)
            total_g, total_h = np.zeros(2**depth), np.zeros(2**depth)
            for i in range(n_fit):
                total_g[leaf[i]] += slope[i]
                total_h[leaf[i]] += curvature[i]
            for place in range(2**depth):
                leaves[tree, output, place] = rate * total_g[place] / (total_h[place] + ridge)
            for i in range(n):
                sums[output, i] += leaves[tree, output, leaf[i]]
        now = _held_out(sums, wanted, n_fit, loss)
        if now < best_loss:
            best_loss, best_trees = now, tree + 1
        elif tree + 1 - best_trees >= patience:
            break
    return best_trees


@linked
def _slopes(sums, wanted, loss, output, slope, curvature):
    """Minus the first and the second derivative of the loss for each person."""
    n_outputs = sums.shape[0]
    for i in range(len(slope)):
        if loss == SQUARES:
            slope[i] = wanted[i] - sums[0, i]
            continue
        if loss == LOGIT:
            p, hit = 1.0 / (1.0 + np.exp(-sums[0, i])), wanted[i]
        else:
            total = 0.0
            for k in range(n_outputs):
                total += np.exp(sums[k, i] - sums[output, i])
            p, hit = 1.0 / total, 1.0 if wanted[i] == output else 0.0
        slope[i], curvature[i] = hit - p, max(p * (1.0 - p), 1e-6)


@linked
def _histogram(bins, leaf, slope, curvature, level, histogram, before):
    """Sums of slopes and bends by leaf, column and bin.

    Only odd leaves are summed over people: their even sisters are what is left of the leaf that both came from.
    """
    width, n_leaves = bins.shape[1], 2**level
    for place in range(n_leaves // 2):
        before[place] = histogram[place]
    histogram[:n_leaves] = 0.0
    for i in range(len(slope)):
        place = leaf[i]
        if level > 0 and place % 2 == 0:
            continue
        g, h = slope[i], curvature[i]
        for f in range(width):
            histogram[place, f, bins[i, f], 0] += g
            histogram[place, f, bins[i, f], 1] += h
    for place in range(0, n_leaves if level > 0 else 0, 2):
        histogram[place] = before[place // 2] - histogram[place + 1]


@linked
def _question(histogram, n_leaves, ridge):
    """The column and the bin that split all leaves best."""
    width, n_bins = histogram.shape[1], histogram.shape[2]
    best_gain, best_f, best_b = -1.0, 0, n_bins - 1
    gains = np.zeros(n_bins)
    for f in range(width):
        gains[:] = 0.0
        for place in range(n_leaves):
            all_g, all_h = 0.0, 0.0
            for b in range(n_bins):
                all_g += histogram[place, f, b, 0]
                all_h += histogram[place, f, b, 1]
            g, h = 0.0, 0.0
            for b in range(n_bins):
                g += histogram[place, f, b, 0]
                h += histogram[place, f, b, 1]
                gains[b] += g * g / (h + ridge) + (all_g - g) ** 2 / (all_h - h + ridge)
        for b in range(n_bins):
            if gains[b] > best_gain + 1e-12:
                best_gain, best_f, best_b = gains[b], f, b
    return best_f, best_b


@linked
def _held_out(sums, wanted, n_fit, loss):
    """The loss on the people after the first ``n_fit``."""
    n_outputs, n = sums.shape
    total = 0.0
    for i in range(n_fit, n):
        if loss == SQUARES:
            total += (wanted[i] - sums[0, i]) ** 2
        elif loss == LOGIT:
            s = sums[0, i] if wanted[i] == 1 else -sums[0, i]
            total += np.log1p(np.exp(-abs(s))) + max(-s, 0.0)
        else:
            top, spread = sums[0, i], 0.0
            for k in range(1, n_outputs):
                top = max(top, sums[k, i])
            for k in range(n_outputs):
                spread += np.exp(sums[k, i] - top)
            total += np.log(spread) + top - sums[int(wanted[i]), i]
    return total


@compiled
def sum_trees(bins, n_trees, depth, splits, leaves, sums):
    """Add the values of the first trees."""
    for tree in range(n_trees):
        for output in range(sums.shape[0]):
            for i in range(bins.shape[0]):
                place = 0
                for level in range(depth):
                    beyond = bins[i, splits[tree, output, level, 0]] > splits[tree, output, level, 1]
                    place = 2 * place + (1 if beyond else 0)
                sums[output, i] += leaves[tree, output, place]
