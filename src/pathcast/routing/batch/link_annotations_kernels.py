# mypy: allow-untyped-defs, allow-untyped-calls
"""Annotations of many documents at one router, for kernels.

Annotations are lists of numbers here, not masks: a document matches few of the aggregates that a neighbour advertised.
`Lists` are the lists of rows (documents at the router): `numbers[begins[row] : ends[row]]`. An aggregate is *open* in a
row if it is not known to fail.

Cost: some nanoseconds per entry that a document matches or that is behind an open aggregate; without negative
annotations a nanosecond per entry of the table for rows with other annotations.
"""

from typing import NamedTuple

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, Writable, kernel, part

NO_ROOM = -1
# Rows of `Stamps.entries`: the entry is known to match; it is open, as all aggregates over it are.
KNOWN, OPEN, ENTRY_STAMPS = range(3)


class Lists(NamedTuple):
    """Numbers by row."""

    begins: Int64s
    ends: Int64s
    numbers: Int32s


class Facts(NamedTuple):
    """Incoming annotations by row; `trusted` if they may rule out entries."""

    has_failed: Bools
    open: Lists
    holding: Lists
    proven: Lists  # entries that bindings prove to match
    has_absent: Bools
    absent: Matrix[Bools]
    trusted: bool


class Behind(NamedTuple):
    """Entries by number: those of `n` are `entries[offsets[n] : offsets[n + 1]]`."""

    offsets: Int64s
    entries: Int32s


class Over(NamedTuple):
    """Numbers by entry: those of `e` are `numbers[begins[e] : begins[e + 1]]`; entries beyond have none."""

    begins: Int32s
    numbers: Int32s


class Advertised(NamedTuple):
    """What the router advertised to the sender: the entries behind aggregates, and data patterns by entry."""

    covered: Behind
    over: Over
    unbound: Behind  # entries that match if an aggregate does, for any bindings
    containing: Over
    free: Int32s  # entries without an aggregate over them


class Table(NamedTuple):
    """The router's table for the sender: groups of entries, and their targets, the first `routers` are neighbours."""

    group: Int32s
    set_offsets: Int64s
    members: Int64s
    sizes: Int64s  # the number of entries of each group
    routers: int
    busy: int  # the number of entries with targets


class Neighbours(NamedTuple):
    """The aggregates that neighbours advertised, by entry: from `begins[e]` on, each with its neighbour."""

    begins: Int64s
    neighbours: Int32s
    numbers: Int32s


class Stamps(NamedTuple):
    """Scratch: the last row, plus 1, for which something holds."""

    entries: Writable[Matrix[Int32s]]
    targets: Writable[Int32s]
    aggregates: Writable[Int32s]
    known: Writable[Int32s]  # the known entries of a row


class Found(NamedTuple):
    """Triples in the order of rows: a neighbour, the row and an aggregate."""

    neighbours: Writable[Int32s]
    rows: Writable[Int32s]
    numbers: Writable[Int32s]


class Rows(NamedTuple):
    """Results by row: neighbours that get it early, the entries left to match; and the lengths of both `Found`."""

    early: Writable[Matrix[Bools]]
    needed: Writable[Int64s]
    filled: Writable[Int64s]


@part
def add_all(entry, row, targets, early, neighbours, at, found):
    """Add the aggregates of an entry for neighbours that get the row early, or for the others; return the new end."""
    if at < 0 or entry >= len(neighbours.begins) - 1:
        return at
    for k in range(neighbours.begins[entry], neighbours.begins[entry + 1]):
        neighbour = neighbours.neighbours[k]
        if (targets[neighbour] == row + 1) == early:
            if at == len(found.rows):
                return NO_ROOM
            found.neighbours[at], found.rows[at], found.numbers[at] = neighbour, row, neighbours.numbers[k]
            at += 1
    return at


@part
def find_known(row, facts, advertised, stamps):
    """List the entries that the sender's annotations prove to match; return their number."""
    count = 0
    for k in range(facts.holding.begins[row], facts.holding.ends[row]):
        number = facts.holding.numbers[k]
        for at in range(advertised.unbound.offsets[number], advertised.unbound.offsets[number + 1]):
            entry = advertised.unbound.entries[at]
            if stamps.entries[KNOWN, entry] != row + 1:
                stamps.entries[KNOWN, entry] = row + 1
                stamps.known[count] = entry
                count += 1
    for k in range(facts.proven.begins[row], facts.proven.ends[row]):
        entry = facts.proven.numbers[k]
        if stamps.entries[KNOWN, entry] != row + 1:
            stamps.entries[KNOWN, entry] = row + 1
            stamps.known[count] = entry
            count += 1
    return count


@part
def stamp_targets(row, known, table, trusted, stamps):
    """Stamp the targets that want a known entry: over an untrusted link neighbours alone."""
    for k in range(known):
        group = table.group[stamps.known[k]]
        if group >= 0:
            for at in range(table.set_offsets[group], table.set_offsets[group + 1]):
                target = table.members[at]
                if trusted or target < table.routers:
                    stamps.targets[target] = row + 1


@part
def all_open(entry, row, over, stamps):
    """Whether all aggregates over an entry are open."""
    for at in range(over.begins[entry], over.begins[entry + 1]):
        if stamps.aggregates[over.numbers[at]] != row + 1:
            return False
    return True


@part
def is_waited_for(group, row, table, stamps):
    """Whether some target of a group is not known to want the document."""
    for at in range(table.set_offsets[group], table.set_offsets[group + 1]):
        if stamps.targets[table.members[at]] != row + 1:
            return True
    return False


@part
def is_needed(entry, row, facts, advertised, table, stamps):
    """Whether an entry must be matched: some target waits for it, and no absent data pattern rules it out."""
    group = table.group[entry]
    if group < 0:
        return False
    if not is_waited_for(group, row, table, stamps):
        return False
    containing = advertised.containing
    if facts.trusted and facts.has_absent[row] and entry < len(containing.begins) - 1:
        for at in range(containing.begins[entry], containing.begins[entry + 1]):
            if facts.absent[row, containing.numbers[at]]:
                return False
    return True


@part
def take_open(row, facts, advertised, table, neighbours, stamps, at, found):
    """Add the open aggregates of neighbours that get the row early; return the end and the number of entries needed."""
    needed = 0
    for k in range(facts.open.begins[row], facts.open.ends[row]):
        stamps.aggregates[facts.open.numbers[k]] = row + 1
    for k in range(facts.open.begins[row], facts.open.ends[row]):
        number = facts.open.numbers[k]
        for place in range(advertised.covered.offsets[number], advertised.covered.offsets[number + 1]):
            entry = advertised.covered.entries[place]
            if stamps.entries[OPEN, entry] != row + 1 and all_open(entry, row, advertised.over, stamps):
                stamps.entries[OPEN, entry] = row + 1
                needed += is_needed(entry, row, facts, advertised, table, stamps)
                at = add_all(entry, row, stamps.targets, True, neighbours, at, found)
    for entry in advertised.free:
        needed += is_needed(entry, row, facts, advertised, table, stamps)
        at = add_all(entry, row, stamps.targets, True, neighbours, at, found)
    return at, needed


@kernel(late=True)
def annotate_rows(
    matched: Lists,
    facts: Facts,
    advertised: Advertised,
    table: Table,
    neighbours: Neighbours,
    stamps: Stamps,
    matching: Found,
    opened: Found,
    rows: Rows,
) -> bool:
    """Find the annotations of each row for each neighbour; return False if there is no room for all.

    A row is early for a neighbour if the sender's annotations prove that the neighbour wants the document. Then
    `matching` has the neighbour's aggregates that they prove to match, and `opened` those that they do not rule out;
    otherwise `matching` has those that match. All stamps must be 0.
    """
    at, opened_at = 0, 0
    for row in range(len(rows.needed)):
        known = find_known(row, facts, advertised, stamps)
        stamp_targets(row, known, table, facts.trusted, stamps)
        for neighbour in range(table.routers):
            rows.early[neighbour, row] = stamps.targets[neighbour] == row + 1
        if facts.trusted:
            for k in range(known):
                at = add_all(stamps.known[k], row, stamps.targets, True, neighbours, at, matching)
        for k in range(matched.begins[row], matched.ends[row]):
            at = add_all(matched.numbers[k], row, stamps.targets, False, neighbours, at, matching)
        if facts.trusted and facts.has_failed[row]:
            opened_at, rows.needed[row] = take_open(
                row, facts, advertised, table, neighbours, stamps, opened_at, opened
            )
        elif facts.trusted and facts.has_absent[row]:
            rows.needed[row] = 0
            for entry in range(len(table.group)):
                rows.needed[row] += is_needed(entry, row, facts, advertised, table, stamps)
        elif known > 0:
            rows.needed[row] = 0
            for group in range(len(table.sizes)):
                rows.needed[row] += table.sizes[group] * is_waited_for(group, row, table, stamps)
        else:
            rows.needed[row] = table.busy
        if at < 0 or opened_at < 0:
            return False
    rows.filled[0], rows.filled[1] = at, opened_at
    return True


@kernel("void(ro_i4[::1], ro_i4[::1], ro_i4[::1], int64, i8[::1], i4[::1])", late=True)
def by_neighbour(neighbours, rows, numbers, count, begins, out):
    """Sort triples by neighbour and row: of row `r` of `count` for neighbour `n`, from `begins[n * count + r]` on.

    `begins` is all 0; its last place is the total.
    """
    for k in range(len(rows)):
        begins[neighbours[k] * count + rows[k] + 1] += 1
    for place in range(1, len(begins)):
        begins[place] += begins[place - 1]
    # The begin of each list moves to its end, which is the begin of the next.
    for k in range(len(rows)):
        place = neighbours[k] * count + rows[k]
        out[begins[place]] = numbers[k]
        begins[place] += 1
    for place in range(len(begins) - 1, 0, -1):
        begins[place] = begins[place - 1]
    begins[0] = 0


@kernel(late=True)
def entries_at_routers(
    offsets: Int64s,
    entries: Int32s,
    owners: Neighbours,
    reached: Matrix[Bools],
    inner: Bools,
    begins: Writable[Int64s],
    out: Writable[Int32s],
) -> int:
    """The entries of each router that each document matches, from those of the whole overlay's table.

    Of document `d` at router `r` they begin at `begins[r * documents + d]`. `owners` has the routers of each entry
    of the whole table, with their own entries; routers that are not `inner`, and documents that did not reach a
    router, get none. Returns the total; if `out` is shorter, it is not filled.
    """
    documents = len(offsets) - 1
    for write in range(2):
        if write:
            for place in range(1, len(begins)):
                begins[place] += begins[place - 1]
            if begins[len(begins) - 1] > len(out):
                return int(begins[len(begins) - 1])
        for document in range(documents):
            for at in range(offsets[document], offsets[document + 1]):
                for k in range(owners.begins[entries[at]], owners.begins[entries[at] + 1]):
                    router = owners.neighbours[k]
                    if not inner[router] or not reached[router, document]:
                        continue
                    place = router * documents + document
                    if write:
                        out[begins[place]] = owners.numbers[k]
                        begins[place] += 1
                    else:
                        begins[place + 1] += 1
    for place in range(len(begins) - 1, 0, -1):
        begins[place] = begins[place - 1]
    begins[0] = 0
    return int(begins[len(begins) - 1])
