import numpy as np
import pytest

from pathcast_lab.harness import MissingRowError, Rows

ROWS = Rows([{"engine": "a", "n": 1, "ms": 2.5}, {"engine": "b", "n": 1, "ms": 5}, {"engine": "a", "n": 2, "kb": None}])


def test_columns_stand_in_the_order_of_first_appearance() -> None:
    assert ROWS.columns == ("engine", "n", "ms", "kb")


def test_rows_are_selected_by_all_values_at_once() -> None:
    assert [row["n"] for row in ROWS.where(engine="a")] == [1, 2]
    assert ROWS.one(engine="a", n=1)["ms"] == 2.5


@pytest.mark.parametrize(("values", "reason"), [({"n": 3}, "no row has n = 3"), ({"n": 1}, "2 rows have n = 1")])
def test_asking_for_the_only_row_says_when_there_is_none_or_more(values: dict[str, int], reason: str) -> None:
    with pytest.raises(MissingRowError, match=reason):
        ROWS.one(**values)


def test_a_number_that_is_not_there_is_missing() -> None:
    assert ROWS.number("ms", engine="b") == 5
    with pytest.raises(MissingRowError, match="no number in column 'ms'"):
        ROWS.number("ms", engine="a", n=2)
    assert ROWS.numbers("ms") == [2.5, 5]


def test_distinct_values_keep_their_order() -> None:
    assert ROWS.distinct("engine") == ["a", "b"]
    assert ROWS.distinct("kb") == [None]


def test_numpy_values_become_plain_ones() -> None:
    [row] = Rows([{"count": np.int64(7), "share": np.float32(0.5), "held": np.bool_(True)}])
    assert [type(value) for value in row.values()] == [int, float, bool]


def test_a_value_that_no_file_could_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="column 'ids' holds a list"):
        Rows([{"ids": [1, 2]}])
