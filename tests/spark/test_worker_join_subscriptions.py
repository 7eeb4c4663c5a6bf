"""Subscriptions to joins for workers: small sets travel with the stage, large ones are in a folder without code."""

import pickle
import shutil

import pytest

from pathcast.errors import PipelineError
from pathcast.joins import Schema
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.spark.joins import worker_join_subscriptions as subscribed
from pathcast.spark.joins.worker_join_subscriptions import StoredJoins, find_subscriptions
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject

SCHEMA = Schema({"R": "k int, a int", "S": "k int, c int"}, joins=["R.k = S.k"])


def standing(count, more=""):
    queries = [f"select * from R, S where R.k = S.k and R.a > {number}{more}" for number in range(count)]
    return StandingJoins(SCHEMA, {"ada": queries})


def found(given, folder, most_bytes=1000):
    return find_subscriptions(given, folder, None, None, streaming=False, most_bytes=most_bytes)


def listed(joins):
    return [(one.id, one.subscriber, one.query) for one in joins.asked]


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch):
    monkeypatch.setattr(subscribed, "_opened", {})


def test_few_subscriptions_travel_with_the_stage(tmp_path):
    assert isinstance(found(standing(3), tmp_path, subscribed.MOST_BYTES).shipped, ShippedObject)
    assert list(tmp_path.iterdir()) == []


def test_many_subscriptions_lie_in_a_folder_named_by_their_content(tmp_path):
    with pytest.raises(PipelineError, match="can be sent with the stage; give folder="):
        found(standing(50), None)
    place = tmp_path / "folder"
    given = found(standing(50), place)
    assert given == found(standing(50), place)
    assert len(pickle.dumps(given)) < 500
    assert listed(given.open(lambda joins: joins)) == listed(standing(50))
    other = found(standing(50, " and S.c < 9"), place)
    assert listed(other.open(lambda joins: joins)) == listed(standing(50, " and S.c < 9"))
    assert len(list(place.iterdir())) == 2


def test_they_are_opened_once_per_process(tmp_path):
    made = []

    def make(joins):
        made.append(joins)
        return [joins]

    assert found(standing(50), tmp_path).open(make) is found(standing(50), tmp_path).open(make)
    assert len(made) == 1


def test_a_folder_with_other_subscriptions_is_an_error(tmp_path):
    given, other = (found(standing(50, more), tmp_path).shipped for more in ("", " and S.c < 9"))
    assert isinstance(given, StoredJoins)
    shutil.rmtree(given.folder)
    with pytest.raises(
        PipelineError, match="worker cannot read the subscriptions: .*the folder does not exist; check the path"
    ):
        given.open()
    shutil.copytree(other.folder, given.folder)
    with pytest.raises(PipelineError, match="does not hold the subscriptions that the stage was planned with"):
        given.open()


def test_a_pickle_in_its_place_is_not_read(tmp_path):
    given = found(standing(50), tmp_path).shipped
    shutil.rmtree(given.folder)
    (tmp_path / given.folder).write_bytes(pickle.dumps(standing(50)))
    with pytest.raises(PipelineError, match="is a file, not a snapshot; give the folder of a snapshot"):
        given.open()
