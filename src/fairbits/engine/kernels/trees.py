"""The compiled part of the tree engine: bins of people, leaves of twins, sums.

Small trees are not walked at all. Every leaf is a bit, from left to right. A split that somebody
takes to the right clears the leaves on its left; what is then the lowest bit is the leaf (QuickScorer, Lucchese et
al., SIGIR 2015). Splits on free attributes are decided once per person. What the protected values of each group of
twins clear is known beforehand, so that one AND per group gives its leaf.

Large trees are walked by a block of people together, depth first: at a split the people of a node are parted in place,
so that a node is looked at once for all of them, and in the order in which nodes lie in memory. The twins that come to
a node are the same for everybody: the plan knows them, and leaves out what no twin comes to.

Sums of float64 trees are added in whatever order is quickest. Those of a library that adds in float32 (``in_order``)
are added tree after tree, twin by twin, as it does, because there the order can be seen in the scores.

People of a block lie side by side in every array, so that loops over them become vector code.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numpy as np

from fairbits.engine.kernels.compiler import compiled, inlined
from fairbits.engine.kernels.lanes import trailing_zeros

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Instead of an attribute: a leaf, a split on protected values, and, counted down from here, attributes whose values go
#: left by a set of bins.
LEAF, TWIN, SET = -1, -2, -3
#: People whose sums are written together: their float64 fill a line of the cache.
TILE = 8


@inlined
def bins_by_table(table, low, codes, bins):
    """Bins of codes that are whole numbers."""
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
def bins_by_search(cuts, shift, scale, single, codes, bins):
    """Bins of codes by the cuts that they lie between; bin 0 is for missing ones."""
    for p in range(len(codes)):
        value = (codes[p] - shift) * scale
        if single:
            value = np.float64(np.float32(value))
        low, size = 0, len(cuts)
        while size > 1:  # without a branch that the processor would have to foretell
            half = size >> 1
            low += half if cuts[low + half - 1] < value else 0
            size -= half
        below = size == 1 and cuts[low] < value
        bins[p] = 0 if np.isnan(value) else 1 + low + np.int64(below)


@compiled
def trees_chunk(plan, codes, block, sums):  # noqa: PLR0912 - one pass over a block, step by step
    """Sums of all twins of every person."""
    n = len(codes)
    attributes = plan.attributes
    count = len(attributes.columns)
    m, outputs = plan.m, len(plan.base)
    bins = np.zeros((max(count, 1), block), np.int32)
    kind = plan.base.dtype
    totals = np.zeros((max(plan.cells, 1), block), kind)
    together = np.empty((outputs * m, block), kind)
    base = np.zeros((outputs, block), kind)
    walking = len(plan.large.roots) > 0
    narrow = np.empty((max(count, 1) if walking else 1, block if walking else 1), plan.large.bin_kind.dtype)
    order = np.empty(block, np.uint16)
    stack = np.empty((plan.large.depth + 2, 3), np.int64)
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
                    attributes.lows[a],
                    attributes.scales[a],
                    attributes.single,
                    mine,
                    into,
                )
        totals[:] = 0.0
        together[:] = 0.0
        for o in range(outputs):
            if plan.in_order:
                together[o * m : (o + 1) * m] = plan.base[o]
            else:
                base[o] = plan.base[o]
        if plan.in_order:
            for part in range(len(plan.parts)):
                first = plan.parts[part, 1]
                totals[first : first + m] = plan.base[plan.parts[part, 0]]
        small_trees(plan.small, bins, lanes, totals)
        if walking:
            for a in range(count):
                for p in range(people):
                    narrow[a, p] = bins[a, p]
            large_trees(plan, narrow, people, base, together, order, stack)
            for o in range(outputs):
                add_up(together[o * m : (o + 1) * m, :lanes], plan.large.axes)
        if not plan.in_order:
            for o in range(outputs):
                for z in range(m):
                    add(together[o * m + z, :lanes], base[o])
        for part in range(len(plan.parts)):
            o, first, place = plan.parts[part, 0], plan.parts[part, 1], plan.parts[part, 2]
            for z in range(m):
                if plan.in_order:
                    together[o * m + z, :lanes] = totals[first + plan.cell_of[place, z], :lanes]
                else:
                    add(together[o * m + z, :lanes], totals[first + plan.cell_of[place, z]])
        for first in range(0, people, TILE):  # a few people at a time: what is read and what is written stay close by
            for o in range(outputs):
                for z in range(m):
                    for p in range(first, min(first + TILE, people)):
                        sums[start + p, o, z] = together[o * m + z, p]
    return -1


@inlined
def add(into, more):
    """Add, person by person."""
    for p in range(len(into)):
        into[p] += more[p]


@inlined
def clear_range(reached, mine, low, span, mask):
    """Close leaves for everybody whose bin is outside of a range."""
    for p in range(len(reached)):
        reached[p] &= ALL if np.uint32(mine[p] - low) <= span else mask


@inlined
def clear_members(reached, mine, members, mask):
    """Close leaves for everybody whose bin is not in a set."""
    for p in range(len(reached)):
        reached[p] &= ALL if members[mine[p]] else mask


@inlined
def take_values(found, reached, kept, values):
    """The value of the lowest leaf that is open."""
    for p in range(len(found)):
        found[p] = values[trailing_zeros(reached[p] & kept)]


@inlined
def take_first(found, open_, reached, kept, values):
    """The value of the lowest leaf that is open, over several words: a leaf in an earlier word counts first."""
    for p in range(len(found)):
        left = reached[p] & kept
        if open_[p] and left != 0:
            found[p] = values[trailing_zeros(left)]
            open_[p] = False


@compiled
def small_trees(small, bins, lanes, totals):
    """Add the values of every small tree to its cells: combinations of the protected values that it looks at."""
    reached = np.empty((small.words.max() if len(small.words) else 1, lanes), np.uint64)
    found = np.empty(lanes, small.values.dtype)
    open_ = np.empty(lanes, np.bool_)
    for t in range(len(small.words)):
        words = small.words[t]
        reached[:words] = ALL
        for split in range(small.split_starts[t], small.split_starts[t + 1]):
            attribute = small.splits[split, 0]
            first = small.splits[split, 1]
            span = np.uint32(small.splits[split, 2])
            mine = bins[attribute if attribute >= 0 else SET - attribute]
            for place in range(small.split_masks[split], small.split_masks[split + 1]):
                word, mask = reached[small.mask_words[place]], small.masks[place]
                if attribute >= 0:
                    clear_range(word, mine, first, span, mask)
                else:
                    clear_members(word, mine, small.members[first:], mask)
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
def split_people(order, low, high, mine, first, span):
    """Put the people of a stretch who go left before those who go right, without a branch."""
    middle = low
    for place in range(low, high):
        person = order[place]
        left = np.uint32(mine[person] - first) <= span
        order[place] = order[middle]
        order[middle] = person
        middle += np.int64(left)
    return middle


@inlined
def split_members(order, low, high, mine, members):
    """Put the people of a stretch whose bin is in a set before the others, without a branch."""
    middle = low
    for place in range(low, high):
        person = order[place]
        left = members[mine[person]]
        order[place] = order[middle]
        order[middle] = person
        middle += np.int64(left)
    return middle


@inlined
def add_up(steps, axes):
    """Steps from twin to twin become what each twin has: sums along one protected attribute after the other."""
    stride = len(steps)
    for axis in range(len(axes)):
        whole = stride
        stride //= axes[axis]
        for begin in range(0, len(steps), whole):
            for z in range(begin + stride, begin + whole):
                add(steps[z], steps[z - stride])


@compiled
def large_trees(plan, bins, people, base, steps, order, stack):  # noqa: PLR0912 - one loop, unrolled by kind
    """Send everybody down every large tree, together: at a split the people of a node are parted in place.

    Which twins come to a node does not depend on the person, so that a node knows them: at a split on a protected
    attribute both sides get all people of the node. Twins form a grid of protected values, and those of a leaf mostly a
    box in it: what a leaf adds is kept as steps at the box's corners, which are few, and added up once at the end. What
    is added at the first twin is added to all of them. Where sums are added in order, every twin of a leaf is a step.
    """
    large, m = plan.large, plan.m
    rows = large.rows
    for t in range(len(large.roots)):
        out = large.outputs[t]
        for p in range(people):
            order[p] = p
        stack[0, 0], stack[0, 1], stack[0, 2] = large.roots[t], 0, people
        depth = 1
        while depth > 0:
            depth -= 1
            node, low, high = np.int64(stack[depth, 0]), np.int64(stack[depth, 1]), np.int64(stack[depth, 2])
            while True:
                at = 4 * node  # its left child comes next
                attribute = np.int64(rows[at])
                if attribute >= 0 or attribute <= SET:
                    in_range = attribute >= 0
                    mine = bins[attribute if in_range else SET - attribute]
                    first, span = rows[at + 1], np.uint32(rows[at + 2])
                    if high - low == 1:  # most of the way down: nobody is left to be parted from
                        bin_ = mine[order[low]]
                        left = np.uint32(bin_ - first) <= span if in_range else large.members[first + bin_]
                        node = node + 1 if left else np.int64(rows[at + 3])
                        continue
                    if in_range:
                        middle = split_people(order, low, high, mine, first, span)
                    else:
                        middle = split_members(order, low, high, mine, large.members[first:])
                    if middle == high:
                        node += 1
                    elif middle == low:
                        node = np.int64(rows[at + 3])
                    else:
                        stack[depth, 0], stack[depth, 1], stack[depth, 2] = rows[at + 3], middle, high
                        depth += 1
                        node, high = node + 1, middle
                elif attribute == TWIN:
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = rows[at + 3], low, high
                    depth += 1
                    node += 1
                else:
                    value, twins = np.int64(rows[at + 1]), np.int64(rows[at + 2])
                    begin, end = large.set_starts[twins], large.set_starts[twins + 1]
                    for w in range(large.width):
                        for step in range(begin, end):
                            twin, adds = large.set_places[step], large.values[value + w] * large.set_steps[step]
                            if twin == 0 and not plan.in_order:
                                for place in range(low, high):
                                    base[out + w, order[place]] += adds
                            else:
                                row = steps[(out + w) * m + twin]
                                for place in range(low, high):
                                    row[order[place]] += adds
                    break
