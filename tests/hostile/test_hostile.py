"""Documents and subscriptions made to cost: each works within bounded memory, or fails at once and names the limit.

Whatever one of them does, other documents and subscriptions still get their matches. Tests check counts, not times.
"""

import gc
import re
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathcast import LimitError, PathcastError, Subscriptions
from pathcast.documents import Limits, Names, Reader, read_batch
from pathcast.documents.expat_reader import _DocumentReader
from pathcast.matching import Matcher, Tuning
from pathcast.matching.automaton.paths.lazy_determinisation import States
from tests.documents.collisions import colliding_names, crowding_names
from tests.hostile.measured import measured

PATTERNS = ("//a", "//b", "//a//a//b", "/a[.//b='x']", "//b[@x]")


def matcher(
    patterns: Iterable[str] = PATTERNS,
    limits: Limits | None = None,
    engine: str | None = None,
    tuning: Tuning | None = None,
) -> Matcher:
    subscriptions = Subscriptions(max_steps=20_000, tuning=tuning)
    subscriptions.add_many(patterns)
    return subscriptions.compile(engine, limits=limits)


def answers(matcher: Matcher, documents: Iterable[bytes | str | Path]) -> list[list[int] | PathcastError]:
    found = matcher.match_many(documents, errors="return")
    return [each if isinstance(each, PathcastError) else each.ids.tolist() for each in found]


def test_the_default_engine_is_under_test() -> None:
    assert matcher().engine_name == "automaton"


# Documents.


def names(form: bytes, count: int) -> bytes:
    return b"".join(form % number for number in range(count))


def attributes(count: int) -> bytes:
    return b"".join(b" a%d=''" % number for number in range(count))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "limit"),
    [
        pytest.param(lambda: b"<a>" * 10_000_000, "depth", id="ten million nested elements"),
        pytest.param(lambda: b"<a>%b</a>" % (b"x" * (128 << 20)), "size", id="too many bytes"),
        pytest.param(lambda: b"<a%b/>" % attributes(1_000_000), "attributes", id="a million attributes"),
        pytest.param(lambda: b"<a>%b</a>" % names(b"<n%d/>", 1_000_000), "names", id="a million names of elements"),
        pytest.param(lambda: b"<a>%b</a>" % names(b"<b n%d=''/>", 500_000), "names", id="many names of attributes"),
        pytest.param(lambda: b"<a>%b</a>" % names(b"<b xmlns='u%d'/>", 300_000), "names", id="many namespaces"),
        pytest.param(lambda: b"<a><%b/></a>" % (b"n" * (1 << 20)), "name_length", id="an element's name of a megabyte"),
        pytest.param(lambda: b"<a %b=''/>" % (b"n" * (1 << 20)), "name_length", id="an attribute's name of a megabyte"),
    ],
)
def test_a_document_beyond_a_limit_is_refused_alone(document: Callable[[], bytes], limit: str) -> None:
    before, refused, after = answers(matcher(), [b"<b/>", document(), b"<a/>"])
    assert before == [2]
    assert after == [1]
    assert isinstance(refused, LimitError)
    assert f"(raise the limit with Limits({limit}=…))" in refused.reason


@pytest.mark.parametrize("before", [b"", b"<!DOCTYPE a>", b"<?xml version='1.0' encoding='iso-8859-1'?>"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_too_many_attributes_are_refused_before_the_end_of_their_tag(before: bytes, codec: str) -> None:
    if codec == "utf-16":
        before = before.replace(b"iso-8859-1", b"utf-16")
    unfinished = (before + b"\n<b><a xmlns='x'%b" % attributes(200_000)).decode().encode(codec)
    with pytest.raises(LimitError, match=re.escape("4,097 attributes or more; the limit is 4,096")) as refused:
        read_batch([unfinished])
    assert (refused.value.line, refused.value.column) == (2, 4)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"<!--<a%b -->", id="comment"),
        pytest.param(b'<a x="%b"/>', id="value"),
        pytest.param(b"<a>&lt;a%b</a>", id="text"),
        pytest.param(b"<a><![CDATA[<a%b]]></a>", id="section"),
        pytest.param(b"<a><?a%b?></a>", id="instruction"),
    ],
)
def test_what_only_looks_like_attributes_is_not_counted(document: bytes) -> None:
    entities = b"<!DOCTYPE a [<!ENTITY e 'x'>]>"  # for expat
    document = entities + document % attributes(200_000) + (b"<a/>" if document.startswith(b"<!--") else b"")
    assert not read_batch([document], entities="expand").errors


def test_of_two_elements_with_too_many_attributes_the_first_is_refused() -> None:
    """The second one does not end in the piece of 1 MiB in which it begins."""
    document = b"<!DOCTYPE r><r xmlns='u'>\n<a b='' c=''/>\n<a b='' c='' d='%b'/></r>" % (b"v" * (1 << 20))
    with pytest.raises(LimitError, match="an element has 2 attributes; the limit is 1") as refused:
        read_batch([document], limits=Limits(attributes=1))
    assert refused.value.line == 2


def test_only_a_declaration_is_a_namespace_that_may_be_too_long() -> None:
    document = b"<!DOCTYPE a [<!ENTITY e 'x'>]><a xmlns='u' xmlnsx='%b'/>" % (b"v" * 20_000)
    assert not read_batch([document], entities="expand").errors


def test_a_very_long_value_is_not_begun_again_for_each_piece_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(_DocumentReader, "check_tag", lambda _, parser, at, end: looks.append(end - at))
    document = b"<!DOCTYPE a [<!ENTITY e 'x'>]><a x='%b'>%b</a>" % (b"v" * (1 << 24), b"<b/>" * (1 << 14))
    assert not read_batch([document], entities="expand").errors
    assert sum(looks) < 1 << 25
    assert len(looks) < 8, "pieces begin with 1 MiB and double"


def test_a_file_beyond_the_limit_is_not_even_read(tmp_path: Path) -> None:
    large = tmp_path / "large.xml"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    it = matcher(limits=Limits(size=1 << 20))
    tracemalloc.start()
    try:
        _, refused, _ = answers(it, [b"<b/>", large, b"<a/>"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(refused, LimitError)
    assert "Limits(size=…)" in refused.reason
    assert peak < 64 << 20


def test_a_document_that_would_make_a_batch_too_large_is_refused_alone() -> None:
    half = b"<a>%b</a>" % (b"x" * 600)
    batch = Reader(Names(), Limits(), "refuse", batch_bytes=1000).read([half, half, b"<b/>"])
    assert list(batch.errors) == [1]
    assert batch[2].name(0) == "b"


def test_with_a_higher_limit_each_of_them_works() -> None:
    deep = b"<a>" * 300_000 + b"<b>x</b>" + b"</a>" * 300_000
    wide = b"<a%b><b/></a>" % attributes(20_000)
    long = b"<a><%b><b/></%b></a>" % (b"n" * (1 << 20), b"n" * (1 << 20))
    limits = Limits(depth=1_000_000, attributes=1_000_000, name_length=1 << 21)
    assert answers(matcher(limits=limits), [deep, wide, long, b"<b/>"]) == [[1, 2, 3, 4], [1, 2], [1, 2], [2]]


@pytest.mark.slow
def test_a_document_of_nothing_but_brackets_is_refused_in_little_memory() -> None:
    """Room is made for tags before they are read: not for more of them than a document of its size can have."""
    run = measured(
        """
import pathcast
import resource
subscriptions = pathcast.Subscriptions()
subscriptions.add("//a")
matcher = subscriptions.compile()
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30),) * 2)
found = list(matcher.match_many([b"<a/>", b"<" * (1 << 26), b"<a/>"], errors="return"))
print([type(each).__name__ for each in found])
"""
    )
    assert run.printed == [str(["Matches", "DocumentError", "Matches"])]
    assert run.megabytes < 600


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(b"<a>", id="not well-formed"),
        pytest.param(b"<%b/>" % (b"n" * 5000), id="beyond a limit"),
        pytest.param("no markup", id="no document at all"),
    ],
)
def test_errors_that_are_kept_do_not_keep_documents(wrong: bytes | str) -> None:
    it = matcher()
    text = b"x" * 100_000
    kept = answers(it, [b"<b>%b</b>" % text, wrong])
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(50):
            kept += [each for each in answers(it, [b"<b>%b</b>" % text, wrong]) if isinstance(each, PathcastError)]
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(kept) == 52
    assert left < 1_000_000


@pytest.mark.slow
def test_a_gigabyte_is_read_within_a_few_times_its_size(request: pytest.FixtureRequest) -> None:
    size = 1 << 30 if request.config.getoption("--long") else 1 << 25
    run = measured(
        f"""
import pathcast
from pathcast.documents import Limits
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(["//p", "//q", "//p[@i='7']"])
matcher = subscriptions.compile(limits=Limits(size=2 << 30))
paragraph = b"<p i='7'>%b</p>" % (b"some words " * 9)
document = b"<d>%b</d>" % (paragraph * ({size} // len(paragraph)))
print(matcher.match(document).ids.tolist(), len(document) > 0.99 * {size})
"""
    )
    assert run.printed == ["[1, 3] True"]
    assert run.megabytes < 400 + 8 * (size >> 20)


@pytest.mark.slow
def test_colliding_names_in_documents_cost_nobody_their_answers() -> None:
    names = colliding_names(150)
    evil = b"<a>%b<b/></a>" % b"".join(b"<%b/>" % name.encode() for name in names)
    crowd = b"<a>%b</a>" % b"".join(b"<%b/>" % name.encode() for name in crowding_names(1 << 14, 3800))
    documents = [evil, b"<b/>", crowd, *(b"<x%d><b/></x%d>" % (n, n) for n in range(50))]
    assert answers(matcher(), documents) == [[1, 2], [2], [1], *[[2]] * 50]


@pytest.mark.slow
def test_many_different_names_are_read_in_memory_of_the_order_of_the_document() -> None:
    """With the limit raised: a document of 4 MB with 400,000 names."""
    run = measured(
        """
import pathcast
from pathcast.documents import Limits
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(["//a", "//n399999"])
matcher = subscriptions.compile(limits=Limits(names=1 << 20))
matcher.match(b"<a/>")
before = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
document = b"<a>%b</a>" % b"".join(b"<n%d/>" % number for number in range(400_000))
print(matcher.match(document).ids.tolist())
after = int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
print((after - before) // 1024 < 120)
"""
    )
    assert run.printed == ["[1, 2]", "True"]


FLOODS = {
    "prefixes": b"<r>%b</r>" % b"".join(b"<p%d:b xmlns:p%d='u'/>" % (n, n) for n in range(200_000)),
    "prefixes in one tag": b"<r %b/>" % b" ".join(b"xmlns:p%d='u'" % n for n in range(200_000)),
    "names under many prefixes": b"<r %b>%b</r>"
    % (
        b" ".join(b"xmlns:p%d='u'" % n for n in range(1000)),
        b"".join(b"<p%d:b%d/>" % (n % 1000, n // 1000) for n in range(300_000)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [b"", b"<!DOCTYPE r [<!ELEMENT r ANY>]>"], ids=["plain", "with a document type"])
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_prefixes_is_refused(flood: str, kind: bytes) -> None:
    """Whichever parser reads the document: expat would keep each prefix, and each name under it."""
    with pytest.raises(LimitError, match="Limits.names="):
        matcher().match(kind + FLOODS[flood])


def test_many_fresh_names_cost_nobody_their_answers() -> None:
    it = matcher()
    for turn in range(3):
        fresh = b"<a>%b<b/></a>" % b"".join(b"<n%d-%d/>" % (turn, n) for n in range(10_000))
        assert answers(it, [b"<b/>", fresh, b"<x><a/></x>"]) == [[2], [1, 2], [1]]


# Subscriptions.


def test_a_pattern_of_ten_thousand_steps_is_refused_alone() -> None:
    subscriptions = Subscriptions()
    steps = "/a" * 10_000
    refused = subscriptions.add_many(["//a", steps, f"//a[.{steps}]", "//b"], errors="collect")
    assert [error.index for error in refused] == [1, 2]
    assert "256 steps (raise the limit with Subscriptions(max_steps=…))" in refused[0].reason
    assert "more than 100 steps" in refused[1].reason
    assert subscriptions.compile().match(b"<a><b/></a>").ids.tolist() == [1, 2]


@pytest.mark.slow
def test_with_a_higher_limit_a_pattern_of_ten_thousand_steps_works() -> None:
    steps = "/a" * 10_000
    limits = Limits(depth=20_000)
    it = matcher(["//b", steps, "//a" * 2000, f"{steps}/b"], limits=limits)
    deep, less = (b"<a>" * count + b"<b/>" + b"</a>" * count for count in (10_000, 2000))
    assert answers(it, [less, deep, b"<b/>"]) == [[1, 3], [1, 2, 3, 4], [1]]


DEEP_TREES = {
    "a value at the end of a path": "/a[{path}='x']",
    "not a path": "/a[not({path})]",
    "a path and another": "/a[{path} and c]",
    "wildcards before an attribute": "/a[{stars}/@x]",
    "nested predicates": "/a{nested}",
}


@pytest.mark.parametrize("form", DEEP_TREES)
@pytest.mark.parametrize(("steps", "max_steps"), [(255, 256), (5000, 10_000)])
def test_a_deep_tree_pattern_is_matched_or_refused_alone(form: str, steps: int, max_steps: int) -> None:
    """In all cases, the other subscriptions work."""
    nested = "[b" * min(steps - 1, 63) + "]" * min(steps - 1, 63)
    text = DEEP_TREES[form].format(path="/".join("b" * (steps - 2)), stars="/".join("*" * (steps - 2)), nested=nested)
    subscriptions = Subscriptions(max_steps=max_steps)
    refused = subscriptions.add_many(["//a", text, "//b"], errors="collect")
    assert all("more than 100 steps" in error.reason for error in refused)
    it = subscriptions.compile(limits=Limits(depth=10_000))
    last = 3 - len(refused)
    assert [1, last] == [id for id in it.match(b"<a><b/></a>").ids.tolist() if id in {1, last}]
    below = b"<b>" * (steps - 2) + b"x" + b"</b>" * (steps - 2)
    assert [1, last] == [id for id in it.match(b"<a>%b</a>" % below).ids.tolist() if id in {1, last}]


def test_colliding_names_in_subscriptions_cost_nobody_their_answers() -> None:
    names = colliding_names(150)
    it = matcher([*(f"//{name}" for name in names), "//b", *(f"//b/{name}" for name in names[:10])])
    first, last = names[0].encode(), names[-1].encode()
    documents = [b"<b/>", b"<%b/>" % first, b"<b><%b/><%b/></b>" % (first, last)]
    assert answers(it, documents) == [[151], [1], [1, 150, 151, 152]]


# The automaton: the states that documents make it cache.


def explosive(random: Random, count: int) -> list[str]:
    """Different patterns of `//`, `*` and three names: of almost every label path, other ones may still come."""
    found: set[str] = set()
    while len(found) < count:
        steps = random.randint(2, 12)
        found.add("".join(random.choice(("/", "//")) + random.choice("**abc") for _ in range(steps)))
    return sorted(found)


def tree(random: Random, names: str | list[str], levels: int) -> str:
    name = random.choice(names)
    inside = "".join(tree(random, names, levels - 1) for _ in range(random.randint(1, 3))) if levels else ""
    return f"<{name}>{inside}</{name}>"


class NeverEndsError(AssertionError):
    """The automaton goes round in circles."""


@dataclass
class Watch:
    """Records how often an automaton computes states, and their peak memory."""

    times: int = 0
    most: int = 0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A match that computes states repeatedly without progress fails, instead of running forever."""
    watch = Watch()
    learn = States.learn

    def watched(states: States, *arguments: Any) -> Any:
        watch.times += 1
        if watch.times > 20_000:
            raise NeverEndsError
        result = learn(states, *arguments)
        watch.most = max(watch.most, states.bytes)
        return result

    monkeypatch.setattr(States, "learn", watched)
    return watch


@pytest.mark.slow
def test_patterns_that_make_states_explode_are_answered_in_bounded_memory(watch: Watch) -> None:
    random = Random(1)
    patterns = explosive(random, 100_000)
    documents = [tree(random, "abc", 7).encode() for _ in range(4)]
    sample = random.sample(range(len(patterns)), 40)
    expected = answers(matcher([patterns[index] for index in sample], engine="reference"), documents)
    it = matcher(patterns)
    empty = it.statistics()["memo bytes"]
    it.match(max(documents, key=len))
    needed = it.statistics()["memo bytes"] - empty
    assert needed > 1 << 20, "states do explode"
    for limit in (empty + needed // 2, 1):
        it = matcher(patterns, tuning=Tuning(state_bytes=limit))
        watch.most = 0
        for document, wanted in zip(documents, expected, strict=True):
            found = set(it.match(document).ids.tolist())
            assert [number + 1 for number, index in enumerate(sample) if index + 1 in found] == wanted
        assert watch.most <= max(limit, empty)
        assert it.statistics()["evictions"] > 0


@pytest.mark.parametrize("limit", [1, 300_000, 400_000])
def test_documents_of_new_label_paths_only_are_answered_in_bounded_memory(watch: Watch, limit: int) -> None:
    random = Random(2)
    names = [f"n{number}" for number in range(200)]
    patterns = ["//" + "//".join(random.sample(names, random.randint(1, 3))) for _ in range(400)]
    documents = [tree(random, names, 5).encode() for _ in range(60)]
    expected = answers(matcher(patterns), documents)
    it = matcher(patterns, tuning=Tuning(state_bytes=limit))
    empty = it.statistics()["memo bytes"]
    watch.most = 0
    for document, wanted in zip(documents, expected, strict=True):
        assert it.match(document).ids.tolist() == wanted
    assert it.statistics()["evictions"] > 0
    assert watch.most <= max(limit, empty)


@pytest.mark.usefixtures("watch")
def test_a_document_with_more_states_than_memory_allows_is_answered() -> None:
    random = Random(3)
    names = [f"n{number}" for number in range(100)]
    patterns = ["//" + "//".join(random.sample(names, random.randint(1, 3))) for _ in range(300)]
    large = tree(random, names, 9).encode()
    documents = [b"<n1/>", large, b"<n2><n1/></n2>"]
    expected = answers(matcher(patterns), documents)
    it = matcher(patterns, tuning=Tuning(state_bytes=25_000))
    assert answers(it, documents) == expected
    assert it.statistics()["simulated"] == 1


def test_a_document_that_takes_too_long_is_refused_alone_and_says_what_to_do() -> None:
    random = Random(4)
    it = matcher(explosive(random, 20_000), limits=Limits(work=1_000_000))
    large = tree(random, "abc", 9).encode()
    small = b"<a><b><c/></b></a>"
    found = answers(it, [small, large, small])
    assert isinstance(found[1], LimitError) and "raise the limit with Limits(work=…)" in str(found[1])
    assert found[0] == found[2] != []
    assert answers(it, [small]) == [found[0]]


@pytest.mark.slow
def test_a_thread_is_not_disturbed_by_states_that_another_one_works_out() -> None:
    """Between taking its arrays and walking them, another thread may add states; or it has to wait."""
    run = measured(
        """
import threading
from random import Random
import pathcast
from pathcast.documents import read_batch
from pathcast.matching.automaton import automaton_engine as automaton
from tests.hostile.test_hostile import tree

random = Random(4)
names = [f"n{number}" for number in range(60)]
patterns = ["//" + "//".join(random.sample(names, random.randint(1, 2))) for _ in range(300)]
subscriptions = pathcast.Subscriptions()
subscriptions.add_many(patterns)
warm = [tree(random, names, 5).encode() for _ in range(40)]
fresh = [tree(random, names, 5).encode() for _ in range(100)]
expected = [found.ids.tolist() for found in subscriptions.compile().match_many(fresh)]
matcher = subscriptions.compile()
for document in warm:
    matcher.match(document)
walk = automaton.walk

def late(*arguments):
    automaton.walk = walk
    other.start()
    other.join(timeout=2)
    return walk(*arguments)

others = []
other = threading.Thread(target=lambda: others.extend(matcher.match(document).ids.tolist() for document in fresh))
automaton.walk = late
found = [each.ids.tolist() for each in matcher.match_many(fresh)]
other.join()
print(found == expected == others)
"""
    )
    assert run.printed == ["True"]
