"""The compiled part of the tree engine: bins of people, leaves of twins, sums.

Small trees (up to 256 leaves) are not walked at all. Every leaf is a bit, from left to right. A split that somebody
takes to the right clears the leaves on its left; what is then the lowest bit is the leaf (QuickScorer, Lucchese et
al., SIGIR 2015). Splits on free attributes are decided once per person. What the protected values of each group of
twins clear is known beforehand, so that one AND per group gives its leaf.

Large trees are walked, a block of people at a time, level by level and without branches. Everybody begins as one
walker with the set of all twins; at a split on a protected attribute the walker falls in two where both sides keep
somebody.

People of a block lie side by side in every array, so that loops over them become vector code.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from fairbits.engine.kernels.simd import compiled, inlined

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
#: Stretches of the values of an attribute that is binned by search.
HINTS = 1024
#: Levels that walkers take before it is looked whether all have stopped.
STRIDE = 4


@inlined
def bins_by_table(table, low, codes, bins):
    """Bins of codes that are whole numbers; gives the first person whose code has none, or -1."""
    size = len(table) - 1
    for p in range(len(codes)):
        code = codes[p]
        place = code - low
        missing = np.isnan(code)
        inside = place >= 0.0 and place < size
        whole = np.int64(place) if inside else 0
        if not missing and (not inside or np.float64(whole) != place):
            return p
        bins[p] = table[size if missing else whole]
    return -1


@inlined
def bins_by_search(cuts, hints, first, stretch, shift, scale, single, codes, bins):
    """Bins of codes by the cuts that they lie between; bin 0 is for missing ones."""
    for p in range(len(codes)):
        value = (codes[p] - shift) * scale
        if single:
            value = np.float64(np.float32(value))
        if np.isnan(value):
            bins[p] = 0
            continue
        # Even stretches of the values between the outermost cuts say where to look; one more on either side for
        # rounding.
        near = np.int64(min(max((value - first) * stretch, 0.0), HINTS - 1.0))
        low, high = hints[max(near - 1, 0)], hints[min(near + 2, HINTS)]
        while low < high:
            middle = (low + high) >> 1
            if cuts[middle] < value:
                low = middle + 1
            else:
                high = middle
        bins[p] = 1 + low


@compiled
def trees_chunk(plan, codes, block, sums):  # noqa: PLR0912 - one pass over a block, step by step
    """Sums of all twins of every person, (n, outputs, m); gives the first row with a code of no bin, or -1."""
    n = len(codes)
    attributes = plan.attributes
    count = len(attributes.columns)
    m, outputs = plan.m, len(plan.base)
    bins = np.zeros((max(count, 1), block), np.int32)
    totals = np.zeros((max(plan.cells, 1), block), np.float64)
    together = np.empty((outputs * m, block), np.float64)
    base = np.empty((outputs, block), np.float64)
    walking = len(plan.large.roots) > 0
    walked = np.empty((block if walking else 1, outputs * m), np.float64)
    room = block * m if walking else 1
    persons, nodes = np.empty(room, np.int32), np.empty(room, np.int32)
    sets = np.empty((room, plan.words), np.uint64)
    for start in range(0, n, block):
        people = min(block, n - start)
        lanes = min(block, (people + 15) // 16 * 16)  # the others are not people
        for a in range(count):
            column, first, size = attributes.columns[a], attributes.starts[a], attributes.sizes[a]
            mine, into = codes[start : start + people, column], bins[a]
            if attributes.tabled[a]:
                wrong = bins_by_table(plan.tables[first : first + size + 1], attributes.lows[a], mine, into)
                if wrong >= 0:
                    return start + wrong
            else:
                bins_by_search(
                    plan.cuts[first : first + size],
                    attributes.hints[a * (HINTS + 1) : (a + 1) * (HINTS + 1)],
                    attributes.firsts[a],
                    attributes.stretches[a],
                    attributes.lows[a],
                    attributes.scales[a],
                    attributes.single,
                    mine,
                    into,
                )
        totals[:] = 0.0
        small_trees(plan.small, bins, lanes, totals)
        for o in range(outputs):
            base[o] = plan.base[o]
        together[:] = 0.0
        if walking:
            walked[:] = 0.0
            large_trees(plan, bins, people, base, walked, persons, nodes, sets)
        for o in range(outputs):
            for z in range(m):
                into = together[o * m + z]
                for p in range(lanes):
                    into[p] += base[o, p]
        for part in range(len(plan.part_outputs)):
            o, first, place = plan.part_outputs[part], plan.part_starts[part], plan.part_cells[part]
            for z in range(m):
                add(together[o * m + z, :lanes], totals[first + plan.cell_of[place, z]])
        for p in range(people):
            for o in range(outputs):
                for z in range(m):
                    sums[start + p, o, z] = together[o * m + z, p] + (walked[p, o * m + z] if walking else 0.0)
    return -1


@inlined
def add(into, more):
    """Add, person by person."""
    for p in range(len(into)):
        into[p] += more[p]


@inlined
def clear_range(reached, mine, low, span, mask):
    """Clear leaves of everybody whose bin is outside of a range."""
    for p in range(len(reached)):
        reached[p] &= ALL if np.uint32(mine[p] - low) <= span else mask


@inlined
def clear_members(reached, mine, members, mask):
    """Clear leaves of everybody whose bin is not in a set."""
    for p in range(len(reached)):
        reached[p] &= ALL if members[mine[p]] else mask


@inlined
def take_values(found, reached, kept, values):
    """The value of the lowest leaf that is left."""
    for p in range(len(found)):
        found[p] = values[trailing_zeros(reached[p] & kept)]


@inlined
def take_first(found, open_, reached, kept, values):
    """The same over several words: whoever has a leaf in an earlier one keeps that."""
    for p in range(len(found)):
        left = reached[p] & kept
        if open_[p] and left != 0:
            found[p] = values[trailing_zeros(left)]
            open_[p] = False


@compiled
def small_trees(small, bins, lanes, totals):
    """Add what every small tree gives to its cells (combinations of the protected values that it looks at)."""
    reached = np.empty((small.words.max() if len(small.words) else 1, lanes), np.uint64)
    found = np.empty(lanes, np.float64)
    open_ = np.empty(lanes, np.bool_)
    for t in range(len(small.words)):
        words = small.words[t]
        reached[:words] = ALL
        for split in range(small.split_starts[t], small.split_starts[t + 1]):
            mine = bins[small.split_attributes[split]]
            members = small.split_members[split]
            for place in range(small.split_masks[split], small.split_masks[split + 1]):
                word, mask = reached[small.mask_words[place]], small.masks[place]
                if members < 0:
                    clear_range(word, mine, small.split_lows[split], small.split_spans[split], mask)
                else:
                    clear_members(word, mine, small.members[members:], mask)
        size = small.leaves[t]
        for w in range(small.width):
            leaf = small.value_starts[t] + w * size
            values = small.values[leaf : leaf + size]
            row = small.cell_starts[t * small.width + w]
            for group in range(small.group_starts[t], small.group_starts[t + 1]):
                at = small.group_masks[group]
                if words == 1:
                    take_values(found, reached[0], small.kept[at], values)
                else:
                    open_[:] = True
                    for word in range(words):
                        take_first(found, open_, reached[word], small.kept[at + word], values[word * 64 :])
                for cell in range(small.cell_lists[group], small.cell_lists[group + 1]):
                    add(totals[row + small.cells[cell], :lanes], found)


@inlined
def advance(nodes, persons, count, bins, rows):
    """Some levels further down for every walker, branch-free; whoever has stopped stays."""
    block = np.int64(bins.shape[1])
    flat = bins.ravel()
    for _ in range(STRIDE):
        for walker in range(count):
            at = np.uint64(nodes[walker]) * np.uint64(4)
            value = flat[np.uint64(rows[at] * block + persons[walker])]
            right = np.uint32(value - rows[at + np.uint64(1)]) > np.uint32(rows[at + np.uint64(2)])
            nodes[walker] = rows[at + np.uint64(3)] + np.int32(right)


@inlined
def advance_members(nodes, persons, count, bins, large):
    """The same for trees with sets of bins among their splits."""
    for _ in range(STRIDE):
        for walker in range(count):
            node = nodes[walker]
            value = bins[large.rows[4 * node], persons[walker]]
            if large.places[node] >= 0 and large.kinds[node] == 0:
                right = bool(not large.members[large.places[node] + value])
            else:
                right = bool(np.uint32(value - large.rows[4 * node + 1]) > np.uint32(large.rows[4 * node + 2]))
            nodes[walker] = large.rows[4 * node + 3] + np.int32(right)


@compiled
def large_trees(plan, bins, people, base, walked, persons, nodes, sets):  # noqa: PLR0912 - one loop, unrolled by kind
    """Walk every large tree: walkers are people with a set of their twins."""
    large, words, m = plan.large, plan.words, plan.m
    for t in range(len(large.roots)):
        root, out = large.roots[t], large.outputs[t]
        for p in range(people):
            persons[p], nodes[p] = p, root
            for word in range(words):
                sets[p, word] = plan.everybody[word]
        count = people
        while count > 0:
            if large.simple[t]:
                advance(nodes, persons, count, bins, large.rows)
            else:
                advance_members(nodes, persons, count, bins, large)
            kept = 0
            added = count
            for walker in range(count):
                node, p = nodes[walker], persons[walker]
                kind = large.kinds[node]
                if kind == 1:  # a leaf
                    at = large.places[node]
                    whole = True
                    for word in range(words):
                        whole &= sets[walker, word] == plan.everybody[word]
                    if whole:
                        for w in range(large.width):
                            base[out + w, p] += large.values[at + w]
                        continue
                    for word in range(words):
                        rest = sets[walker, word]
                        while rest != 0:
                            z = word * 64 + np.int64(trailing_zeros(rest))
                            for w in range(large.width):
                                walked[p, (out + w) * m + z] += large.values[at + w]
                            rest &= rest - ONE
                    continue
                if kind == 2:  # a protected attribute: the children stand side by side
                    at = large.places[node]
                    some, others = False, False
                    for word in range(words):
                        some |= (sets[walker, word] & large.twins[at + word]) != 0
                        others |= (sets[walker, word] & ~large.twins[at + word]) != 0
                    node = large.branches[node] + np.int32(not some)
                    if some and others:
                        persons[added], nodes[added] = p, node + 1
                        for word in range(words):
                            sets[added, word] = sets[walker, word] & ~large.twins[at + word]
                            sets[walker, word] &= large.twins[at + word]
                        added += 1
                persons[kept], nodes[kept] = p, node
                for word in range(words):
                    sets[kept, word] = sets[walker, word]
                kept += 1
            for walker in range(count, added):  # close the gap
                persons[kept], nodes[kept] = persons[walker], nodes[walker]
                for word in range(words):
                    sets[kept, word] = sets[walker, word]
                kept += 1
            count = kept
