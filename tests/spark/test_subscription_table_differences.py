"""The difference between two sets of subscriptions."""

import pyarrow as pa

from pathcast.spark.publishing.subscription_table_differences import difference

COLUMNS = ["id", "xpath", "subscriber"]
BEFORE = [(1, "//a", "ada"), (2, "//b", None), (3, "//c", "bob"), (4, "//d", None)]


def table(rows):
    kinds = (pa.int64(), pa.string(), pa.string())
    return pa.table([pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)], names=COLUMNS)


def test_subscriptions_are_compared_by_id():
    after = [(9, "//a", "ada"), (4, "//d", "new"), (3, "//other", "bob"), (2, "//b", None)]
    assert difference(table(BEFORE), table(after)) == (1, 1, 2)
    assert difference(table(BEFORE), table(BEFORE[::-1])) == (0, 0, 0)
    assert difference(table([]), table(BEFORE)) == (4, 0, 0)
    assert difference(table(BEFORE), table([])) == (0, 4, 0)


def test_without_ids_each_row_counts_as_often_as_it_occurs():
    after = [(1, "//b", None), (2, "//c", "bob"), (3, "//d", None), (4, "//b", None)]
    assert difference(table(BEFORE), table(after), by_id=False) == (1, 1, 0)
