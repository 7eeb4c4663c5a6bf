"""Errors of tasks: the driver gets an equal error, and other bytes are rejected without running code."""

import os
import pickle

import pytest

from pathcast import errors
from pathcast.errors import PathcastError, PatternError, PipelineError, SnapshotError
from pathcast.spark.publishing.task_error_codec import read_failure, write_failure

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PathcastError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_comes_back_as_an_equal_one(kind):
    error = kind("it is wrong", line=3, column=7)
    error.index = 2
    assert read_failure(write_failure(error)) == error
    assert str(read_failure(write_failure(error))) == str(error)


def test_a_pattern_error_keeps_its_expression():
    error = PatternError("not supported", column=3, expression="//\ud800[", offending="[", supported="child")
    again = read_failure(write_failure(error))
    assert isinstance(again, PatternError)
    assert again.expression == "//\\ud800["
    assert (again.offending, again.supported, again.column) == ("[", "child", 3)


def test_an_error_of_another_package_comes_back_as_the_kind_it_derives_from():
    class OwnError(PipelineError):
        def __init__(self, reason):
            super().__init__(reason)
            self.own = object()

    again = read_failure(write_failure(OwnError("it is wrong")))
    assert type(again) is PipelineError
    assert again.reason == "it is wrong"


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_other_bytes_are_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = write_failure(PipelineError("x"))
    bad = [pickle.dumps(Bomb()), b"", good[:-1], good.replace(b"PipelineError", b"PopelineError")]
    for data in [*bad, good.replace(b"line", b"lime")]:
        with pytest.raises(SnapshotError, match="the failure of a task"):
            read_failure(data)
    assert not (tmp_path / "exploded").exists()
