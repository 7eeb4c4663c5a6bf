"""The matcher: inputs, order, errors in the place of matches, and the index on disk."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pathcast
from pathcast import DocumentError, LimitError, Limits, SnapshotError, Subscriptions
from pathcast.documents import Document, Readable, read, read_batch
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.matching import Matches, engines
from pathcast.matching.engine_contract import Skipping
from pathcast.patterns import Namespaces, parse
from pathcast.store import write_snapshot

XML = b'<news lang="en"><head><title>Rain</title></head><p lede="true">Wet.</p></news>'


@pytest.fixture(params=engines())
def matcher(request: pytest.FixtureRequest) -> pathcast.Matcher:
    subscriptions = Subscriptions()
    subscriptions.add_many(
        ["/news/head/title", "//p[@lede='true']", "//video", "title", "/news[head]/p"],
        subscribers=["ada", "bob", "cyd", "ada", None],
    )
    return subscriptions.compile(engine=request.param)


def test_any_form_of_a_document_matches_alike(matcher: pathcast.Matcher, tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_bytes(XML)
    batch = read_batch([b"<other/>", XML])
    for form in (XML, XML.decode(), bytearray(XML), tmp_path / "x.xml", read(XML), batch[1]):
        assert matcher.match(form).ids.tolist() == [1, 2, 4, 5], form


def test_matches_are_sorted_read_only_and_ask_like_a_set(matcher: pathcast.Matcher) -> None:
    matches = matcher.match(XML)
    assert matches.ids.dtype == np.int32 and not matches.ids.flags.writeable
    assert len(matches) == 4 and 2 in matches and 3 not in matches and "2" not in matches
    assert list(matches) == [1, 2, 4, 5] and matches.subscribers == ["ada", "bob"]
    nothing = matcher.match(b"<x/>")
    assert not nothing and len(nothing) == 0 and nothing.subscribers == [] and nothing.ids.tolist() == []


@pytest.mark.slow
def test_many_documents_keep_their_order_and_errors_their_place(matcher: pathcast.Matcher, tmp_path: Path) -> None:
    documents: list[Readable | Document] = [XML, b"<x", tmp_path / "none.xml", read(XML), b"<video/>"] * 200
    found = list(matcher.match_many(documents, errors="return"))
    assert len(found) == 1000
    for index, matches in enumerate(found):
        match index % 5:
            case 0 | 3:
                assert isinstance(matches, Matches) and list(matches) == [1, 2, 4, 5]
            case 1 | 2:
                assert isinstance(matches, DocumentError)
            case _:
                assert isinstance(matches, Matches) and list(matches) == [3]


def test_raising_comes_after_what_was_before_it(matcher: pathcast.Matcher) -> None:
    answers = matcher.match_many([XML, b"<x", XML])
    assert len(next(answers)) == 4
    with pytest.raises(DocumentError):
        next(answers)
    with pytest.raises(ValueError, match="must be"):
        matcher.match_many([XML], errors="drop")  # type: ignore[call-overload]


def test_answers_come_before_the_input_ends(matcher: pathcast.Matcher) -> None:
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield XML

    answers = matcher.match_many(endless())
    assert len(next(answers)) == 4 and taken < 1000


def test_a_batch_gives_offsets_and_ids(matcher: pathcast.Matcher) -> None:
    offsets, ids = matcher.match_batch(read_batch([b"<x/>", XML, b"<", b"<video/>"], errors="return"))
    assert offsets.tolist() == [0, 0, 4, 4, 5] and [*sorted(ids[:4].tolist()), *ids[4:]] == [1, 2, 4, 5, 3]
    offsets, ids = matcher.match_batch(read_batch([]))
    assert offsets.tolist() == [0] and ids.tolist() == []


def as_data(documents: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    data = np.frombuffer(b"".join(documents) + bytes(PADDING), dtype=np.uint8)
    return data, np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64)


@pytest.mark.slow
def test_documents_as_data_match_alike(matcher: pathcast.Matcher) -> None:
    matcher.subscriptions.add_many(["//p"] * 3000, [f"reader-{k % 1000}" for k in range(3000)])
    documents = [XML, b"<x", b"<video/>", b"<nobody/>", b"<p/>"] * 100
    answers = list(matcher.match_many(documents, errors="return"))
    ids, names = (
        matcher.match_data(*as_data(documents), by="id", ordered=True),
        matcher.match_data(*as_data(documents), by="subscriber"),
    )
    assert set(ids.errors) == set(names.errors) == set(range(1, 500, 5))
    for index, answer in enumerate(answers):
        mine = slice(*ids.offsets[index : index + 2])
        who = [names.names[rank] for rank in names.values[slice(*names.offsets[index : index + 2])]]
        if not isinstance(answer, Matches):
            assert isinstance(answer, DocumentError)
            assert ids.values[mine].size == 0 and who == [] and ids.errors[index] == answer
        else:
            assert ids.values[mine].tolist() == answer.ids.tolist()
            assert who == answer.subscribers


def test_matches_keep_the_meaning_they_had(matcher: pathcast.Matcher) -> None:
    before = matcher.match(XML)
    matcher.subscriptions.remove(1)
    matcher.subscriptions.add("//head", subscriber="dan")
    assert before.ids.tolist() == [1, 2, 4, 5] and before.subscribers == ["ada", "bob"]
    assert matcher.match(XML).ids.tolist() == [2, 4, 5, 6] and matcher.match(XML).subscribers == ["ada", "bob", "dan"]


def test_a_new_name_is_found_in_documents_read_before_it(matcher: pathcast.Matcher) -> None:
    document = read(b"<later><x/></later>")
    assert not matcher.match(document)
    matcher.subscriptions.add("/later/x")
    assert matcher.match(document).ids.tolist() == [6]


def test_names_that_came_since_a_batch_was_read_are_not_mistaken_for_its_own(matcher: pathcast.Matcher) -> None:
    batch = matcher._reader.read([b"<x><y/></x>"])
    matcher.subscriptions.add_many(["//z", "//y"])
    (found,) = matcher.match_read(batch)
    assert isinstance(found, Matches) and list(found) == [7]


def test_no_subscriptions_match_nothing() -> None:
    for engine in engines():
        subscriptions = Subscriptions()
        matcher = subscriptions.compile(engine=engine)
        assert list(matcher.match(XML)) == []
        subscriptions.add("/")
        assert list(matcher.match(XML)) == [1]


def test_limits_and_entities_reach_the_reader() -> None:
    subscriptions = Subscriptions()
    subscriptions.add("//b")
    with pytest.raises(LimitError):
        subscriptions.compile(limits=Limits(depth=1)).match(b"<a><b/></a>")
    data = b"<!DOCTYPE a [<!ENTITY e '<b/>'>]><a>&e;</a>"
    with pytest.raises(DocumentError):
        subscriptions.compile().match(data)
    assert len(subscriptions.compile(entities="expand").match(data)) == 1


def test_ignored_namespaces_match_local_names() -> None:
    for engine in engines():
        subscriptions = Subscriptions(namespaces="ignore")
        subscriptions.add_many(["/f:a/b", "//@k", "//Q{v}c"])
        matcher = subscriptions.compile(engine=engine)
        assert list(matcher.match(b'<x:a xmlns:x="u" xmlns:y="v"><y:b y:k=""/></x:a>')) == [1, 2]
        assert list(matcher.match(b"<c/>")) == [3]


def test_skipped_entries_are_left_out(matcher: pathcast.Matcher) -> None:
    engine = matcher.engine
    if isinstance(engine, Skipping):
        skip = np.zeros(len(matcher.subscriptions.table), dtype=np.bool_)
        batch = read_batch([XML, b"<video/>"])
        assert [part.tolist() for part in engine.match_except(batch, skip)] == [
            part.tolist() for part in engine.match_batch(batch)
        ]
        texts = [matcher.subscriptions.table.text(entry) for entry in range(len(skip))]
        skip[[texts.index("/news/head/title"), texts.index("//video")]] = True
        left = [texts[entry] for entry in engine.match_except(batch, skip)[1]]
        assert sorted(left) == sorted(map(str, map(parse, ["//p[@lede = 'true']", "//title", "/news[head]/p"])))
    else:
        assert engine.name != "reference"


def test_statistics_count_documents(matcher: pathcast.Matcher) -> None:
    list(matcher.match_many([XML, b"<"], errors="return"))
    statistics = matcher.statistics()
    assert (statistics["documents"], statistics["unreadable"], statistics["subscriptions"]) == (2, 1, 5)


def test_an_index_on_disk_answers_alike_and_goes_on(matcher: pathcast.Matcher, tmp_path: Path) -> None:
    matcher.subscriptions.remove(3)
    matcher.subscriptions.add_many(["//p[. = 'Wet.' or not(q)]", "./head"], ids=[40, 8])
    matcher.save(tmp_path / "index")
    again = pathcast.open_index(tmp_path / "index")
    assert again.engine_name == matcher.engine_name
    assert list(again.subscriptions) == list(matcher.subscriptions)
    assert list(again.match(XML)) == list(matcher.match(XML)) == [1, 2, 4, 5, 8, 40]
    assert again.match(XML).subscribers == ["ada", "bob"]
    assert again.subscriptions.add("//news", subscriber="zoe") == 41
    assert 41 in again.match(XML) and 41 not in matcher.match(XML)


def test_an_index_of_patterns_at_their_limits_opens(tmp_path: Path) -> None:
    subscriptions = Subscriptions(max_steps=1)
    subscriptions.add("/a[/ = 'x']")
    subscriptions.compile().save(tmp_path / "a")
    assert len(pathcast.open_index(tmp_path / "a").match(b"<a>x</a>")) == 1
    deep = "//a" + "[b" * 63 + "[not(c = 5)]" + "]" * 63
    with pytest.raises(LimitError):
        Subscriptions().add(deep)
    nested = "//a" + "[b" * 62 + "[not(c = 5)]" + "]" * 62
    subscriptions = Subscriptions()
    subscriptions.add(nested)
    subscriptions.compile().save(tmp_path / "b")
    assert list(pathcast.open_index(tmp_path / "b").subscriptions) == list(subscriptions)


def test_an_index_keeps_namespaces(tmp_path: Path) -> None:
    every: list[Namespaces] = [{"f": "http://example.org/f"}, "ignore", None]
    for namespaces in every:
        subscriptions = Subscriptions(namespaces=namespaces)
        subscriptions.add_many(["/a/b"] if namespaces is None else ["/f:a/f:b", "//f:b[f:c = 'é']"])
        subscriptions.compile(engine="reference").save(tmp_path / "index")
        again = pathcast.open_index(tmp_path / "index")
        assert list(again.subscriptions) == list(subscriptions) and again.subscriptions.namespaces == namespaces


def test_a_foreign_index_is_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a", "something", {}, {})
    with pytest.raises(SnapshotError, match="kind"):
        pathcast.open_index(tmp_path / "a")
    write_snapshot(tmp_path / "b", "index", {"engine": "warp"}, {})
    with pytest.raises(SnapshotError, match="engine 'warp'"):
        pathcast.open_index(tmp_path / "b")


@pytest.mark.slow
def test_importing_pathcast_loads_nothing_heavy() -> None:
    heavy = {"numpy", "numba", "lxml", "pyarrow", "pyspark", "typer"}
    code = f"import sys, pathcast; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
