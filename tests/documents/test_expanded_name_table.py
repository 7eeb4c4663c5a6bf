"""Tables of names, and ids of one in another."""

from pathcast.documents import Names


def test_ids_of_one_table_in_another_follow_both_as_they_grow() -> None:
    one, other = Names(["a", "b"]), Names(["b"])
    assert one.onto(other).tolist() == [-1, 0]
    assert one.onto(other) is one.onto(other)
    other.add("a")
    assert one.onto(other).tolist() == [1, 0]
    one.add("c")
    assert one.onto(other).tolist() == [1, 0, -1]
    assert one.onto(Names(["c"])).tolist() == [-1, -1, 0]
