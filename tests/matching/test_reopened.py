"""An opened index continues to change like the set that it was saved from."""

import pathcast
from pathcast import Subscriptions


def reopened(subscriptions: Subscriptions, folder) -> Subscriptions:
    subscriptions.compile().save(folder)
    return pathcast.open_index(folder).subscriptions


def test_what_was_removed_stays_removed_whatever_the_order_of_ids(tmp_path):
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a", "/b", "/c"], ids=[5, 2, 9])
    subscriptions.remove(2)
    again = reopened(subscriptions, tmp_path / "index")
    assert 2 not in again
    assert [number for number in (2, 5, 9) if number in again] == [5, 9]
    assert again.add("/d", id=2) == 2


def test_a_pattern_with_predicates_may_be_the_first_addition(tmp_path):
    subscriptions = Subscriptions()
    subscriptions.add("/a")
    again = reopened(subscriptions, tmp_path / "index")
    again.add_many([])
    number = again.add("/a[@b]")
    assert again.compile().match("<a b=''/>").ids.tolist() == [1, number]


def test_an_index_with_one_value_test_beside_twigs_is_laid_out_anew(tmp_path):
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a[contains(., 'some')]", "/a[b]/c"])
    subscriptions.compile().save(tmp_path / "index")
    matcher = pathcast.open_index(tmp_path / "index")
    matcher.subscriptions.add("/a[c]/d")
    matcher.save(tmp_path / "again")
    for each in (matcher, pathcast.open_index(tmp_path / "again")):
        assert each.match("<a><b/><c>some</c><d/></a>").ids.tolist() == [1, 2, 3]
