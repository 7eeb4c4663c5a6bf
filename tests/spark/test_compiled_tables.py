"""A table of subscriptions becomes the index that a few plain lines make from its rows, however it is compiled."""

import random

import pytest

import pathcast
from pathcast.errors import PathcastError
from pathcast.matching.subscriptions.subscription_files import LARGEST_ID
from pathcast.spark import compile_subscriptions
from pathcast.spark.publishing.index_shards import shard_folder, shard_of, shards_in
from pathcast.spark.publishing.index_versions import version_folder, versions
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

NEWS = [*generate_documents(news_schema(), 12, seed=3), b"<b xmlns='urn:n' k='1'/>"]
NAMESPACES = {"n": "urn:n"}
COLUMNS = "id string, subscriber string, xpath string"
CHANGES = f"{COLUMNS}, change string, sequence int"
WRONG = ["//p[", "/a/sideways::b", "//m:b", "", None, "//a[b = ]"]


def drawn(count, seed, first=1):
    """Rows with all kinds of valid and invalid values."""
    draw = random.Random(seed)
    xpaths = generate_subscriptions(news_schema(), 30, SubscriptionOptions(predicate_probability=0.3), seed=seed)
    xpaths += [
        "//n:b",
        "//n:b[@k = 1]",
        *generate_subscriptions(news_schema(), 30, SubscriptionOptions(predicates=2), seed=seed),
    ]
    rows = []
    for number in range(first, first + count):
        id = draw.choice([str(number)] * 8 + [str(draw.randrange(first, first + count)), "0", "x", None])
        name = draw.choice([None, "", *(f"reader-{at}" for at in range(7))])
        rows.append((id, name, draw.choice(WRONG) if draw.random() < 0.15 else draw.choice(xpaths)))
    return rows


def drawn_changes(rows, count, seed):
    """Changes to some of these rows, several to one id, some already made, some impossible; shuffled."""
    draw = random.Random(seed)
    changes = []
    for sequence, row in enumerate(drawn(count, seed, first=len(rows) - count // 2)):
        word = draw.choice(["added", "added", "added", "removed", "removed", "moved", None])
        changes.append((*(draw.choice(rows) if draw.random() < 0.3 else row), word, sequence))
    draw.shuffle(changes)
    return changes


class Expected:
    """The expected result for rows: `kept` subscriptions in their order, counts, and the rows that are `invalid`."""

    def __init__(self):
        self.before, self.kept, self.invalid = {}, {}, []

    def publish(self):
        """The next version is compared with the rows kept now."""
        self.before, self.invalid = dict(self.kept), []

    def take(self, rows, *, has_id=True):
        for given, name, xpath in rows:
            id = self._checked(given, name, xpath, "added", has_id=has_id)
            if id in self.kept:
                self._refuse(id, name, xpath, "added", f"id {id} is already in use")
            elif id is not None:
                self.kept[id] = xpath, name or None
        return self

    def change(self, changes):
        last: dict[int, tuple[str | None, str, str]] = {}
        for given, name, xpath, word, _ in sorted(changes, key=lambda row: row[-1]):
            id = self._checked(given, name, xpath, word)
            if id is not None:
                last.pop(id, None)
                last[id] = name or None, xpath, word
        fresh = {}
        for id, (name, xpath, word) in last.items():
            if word == "removed" and id not in self.kept:
                self._refuse(id, name, xpath, word, f"cannot remove subscription {id}: the id is not in use")
            elif word == "removed" or self.kept.get(id) != (xpath, name):
                self.kept.pop(id, None)
                if word == "added":
                    fresh[id] = xpath, name
        self.kept |= fresh
        return self

    def _checked(self, given, name, xpath, word, *, has_id=True):
        """The id, if it is valid."""
        reason: str | None
        id = (int(given) if (given or "").isdecimal() else None) if has_id else len(self.kept) + 1
        if word not in ("added", "removed"):
            reason, column = f"change must be 'added' or 'removed', got {word!r}", None
        elif id is None or not 0 < id <= LARGEST_ID:
            reason, column = f"id must be a whole number from 1 to {LARGEST_ID:,}, got {given!r}", None
        else:
            reason, column = wrong_with(xpath or "") if word == "added" else (None, None)
        if reason is None:
            return id
        self._refuse(id if has_id else None, name, xpath, word, reason, column)
        return None

    def _refuse(self, id, name, xpath, word, reason, column=None):
        self.invalid.append((id, name or None, xpath or "", word, reason, column))

    def counts(self, version):
        added, removed = self.kept.keys() - self.before.keys(), self.before.keys() - self.kept.keys()
        changed = [id for id in self.kept.keys() & self.before.keys() if self.kept[id] != self.before[id]]
        return version, len(self.kept), len(added), len(removed), len(changed), len(self.invalid)


def wrong_with(xpath):
    try:
        pathcast.Subscriptions(NAMESPACES).add(xpath)
    except PathcastError as error:
        return error.reason, error.column
    return None, None


def in_order(invalid):
    return sorted(map(tuple, invalid), key=repr)


def check(report, folder, expected, version=1, shards=None):
    """Compare a report, and the version that it describes, with the expected result."""
    found = report.version, report.subscriptions, report.added, report.removed, report.changed, report.invalid_count
    assert found == expected.counts(version)
    assert in_order(report.invalid.collect()) == in_order(expected.invalid)
    place = version_folder(folder, version)
    assert shards_in(place) == (shards or 0)
    parts = [place] if shards is None else [shard_folder(place, number) for number in range(shards)]
    for number, part in enumerate(parts):
        matcher, plain = pathcast.open_index(part), pathcast.Subscriptions(NAMESPACES)
        for id, (xpath, name) in expected.kept.items():
            if shards is None or shard_of(name, id, shards) == number:
                plain.add(xpath, name, id)
        assert list(matcher.subscriptions) == list(plain)
        ours, theirs = (
            [(each.ids.tolist(), each.subscribers) for each in one.match_many(NEWS)]
            for one in (matcher, plain.compile("reference"))
        )
        assert ours == theirs
    assert expected.kept and expected.invalid


@pytest.mark.parametrize("shards", [None, 3], ids=["whole", "shards"])
def test_without_ids_they_are_given_out_in_the_order_of_the_rows_that_are_right(spark, tmp_path, shards):
    rows = [(None, name, xpath) for _, name, xpath in drawn(60, 1)]
    frame = spark.createDataFrame(rows, COLUMNS).repartition(3, "xpath").drop("id")
    frame = spark.createDataFrame([tuple(row) for row in frame.collect()], "subscriber string, xpath string")
    in_their_order = [(None, *row) for row in frame.collect()]
    report = compile_subscriptions(frame, tmp_path, namespaces=NAMESPACES, shards=shards)
    check(report, tmp_path, Expected().take(in_their_order, has_id=False), shards=shards)


@pytest.mark.parametrize("many", [None, 10], ids=["alone", "together"])
def test_a_table_then_changes_then_nothing_new(spark, tmp_path, many):
    rows = drawn(80, 2)
    table = spark.createDataFrame(rows, COLUMNS)
    report = compile_subscriptions(table, tmp_path, namespaces=NAMESPACES, many=many)
    expected = Expected().take(rows)
    check(report, tmp_path, expected)
    changes = drawn_changes(rows, 60, 2)
    frame = spark.createDataFrame(changes, CHANGES)
    expected.publish()
    report = compile_subscriptions(None, tmp_path, changes=frame, many=many)
    check(report, tmp_path, expected.change(changes), 2)
    assert report.added and report.removed and report.changed and report.published
    expected.publish()
    report = compile_subscriptions(None, tmp_path, changes=frame, many=many)
    check(report, tmp_path, expected.change(changes), 2)
    assert versions(tmp_path) == [1, 2] and not report.published


@pytest.mark.parametrize("shards", [None, 1, 2, 3, 4])
def test_a_table_and_changes_to_it_at_once(spark, tmp_path, shards):
    rows = drawn(70, shards or 9)
    changes = drawn_changes(rows, 50, shards or 9)
    table = spark.createDataFrame(rows, COLUMNS)
    frame = spark.createDataFrame(changes, CHANGES)
    report = compile_subscriptions(table, tmp_path, changes=frame, namespaces=NAMESPACES, shards=shards)
    check(report, tmp_path, Expected().take(rows).change(changes), shards=shards)


@pytest.mark.parametrize("shards", [None, 2], ids=["whole", "shards"])
def test_a_table_is_compared_with_the_version_before(spark, tmp_path, shards):
    rows: list[tuple[str, str | None, str]] = [
        (str(number), f"reader-{number % 5}", f"//a{number}[@b]") for number in range(1, 13)
    ]
    rows += [("13", None, "//[")]

    def compiled(rows, pieces=shards, **settings):
        report = compile_subscriptions(spark.createDataFrame(rows, COLUMNS), tmp_path, shards=pieces, **settings)
        return report.line

    first = "version 1: 12 subscriptions, 12 added, 0 removed, 0 changed, 0 unchanged, 1 invalid"
    assert compiled(rows) == first
    assert compiled(rows[::-1]) == "version 1, unchanged: 12 subscriptions, 1 invalid"
    rows = [*rows[2:], ("20", "new", "//new"), ("3", "reader-3", "//other")]
    rows.remove(("3", "reader-3", "//a3[@b]"))
    assert compiled(rows) == "version 2: 11 subscriptions, 1 added, 2 removed, 1 changed, 9 unchanged, 1 invalid"
    again = "11 subscriptions, 0 added, 0 removed, 0 changed, 11 unchanged, 1 invalid"
    assert compiled(rows, namespaces={"n": "urn:n"}) == f"version 3: {again}"
    assert compiled(rows, 3, namespaces={"n": "urn:n"}) == f"version 4: {again}"
    assert versions(tmp_path) == [1, 2, 3, 4]


def test_rows_without_ids_are_compared_by_what_they_say(spark, tmp_path):
    rows = [("ada", f"//a{number}") for number in range(12)]
    for some, line in (
        (rows, "version 1: 12 subscriptions, 12 added, 0 removed, 0 changed, 0 unchanged, 0 invalid"),
        (rows, "version 1, unchanged: 12 subscriptions, 0 invalid"),
        (
            [*rows[2:], ("bob", "//b")],
            "version 2: 11 subscriptions, 1 added, 2 removed, 0 changed, 10 unchanged, 0 invalid",
        ),
    ):
        frame = spark.createDataFrame(some, "subscriber string, xpath string").coalesce(1)
        assert compile_subscriptions(frame, tmp_path).line == line


@pytest.mark.parametrize("shards", [None, 2], ids=["whole", "shards"])
def test_with_too_many_invalid_rows_nothing_is_published(spark, tmp_path, shards):
    frame = spark.createDataFrame([("1", "ada", "//a"), ("2", "ada", "//n:a"), ("3", "ada", "//n:b")], COLUMNS)
    report = compile_subscriptions(frame, tmp_path, shards=shards, max_invalid=0.5)
    assert report.line == "nothing published: 2 of 3 are invalid"
    assert (report.version, report.published, versions(tmp_path)) == (0, False, [])
    assert sorted(row.id for row in report.invalid.collect()) == [2, 3]
    assert compile_subscriptions(frame, tmp_path, shards=shards).version == 1
