"""The scanner on whole batches: documents never see their neighbours, and those that expat reads take their places."""

import itertools
import threading
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from pathcast.documents import Limits, Names, read_batch
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.documents.scanner.name_table import OWN_BYTES, OWN_NAMES, NameTable
from pathcast.documents.scanner.scanner import Scanner
from pathcast.errors import DocumentError
from tests.documents.collisions import colliding_names, crowding_names
from tests.documents.equivalence import by_expat, by_scanner, differences, passed_on
from tests.documents.mutations import mutations

KINDS = (
    b"<a b='1'>x<c>y</c>&amp;</a>",
    b"",
    "<é d='&#233;'>ü<c/>w</é>".encode(),
    b"<a><c></a>",
    b"<!DOCTYPE a [<!ATTLIST a k CDATA 'v'>]><a>t<e/></a>",
    b"<p:a xmlns:p='u' p:b='2'><c/>z</p:a>",
    "<?xml version='1.0' encoding='utf-16'?><c é='1'>é</c>".encode("utf-16"),
)


def test_no_document_and_one_document() -> None:
    for documents in ([], [b""], [b"<a/>"], [b"x"]):
        assert differences(by_scanner(documents), by_expat(documents)) == []
    assert len(by_scanner([])) == 0


@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, 5))
def test_documents_read_by_expat_take_their_places(length: int) -> None:
    """Every mixture of documents that the kernel reads, that expat reads, and that are wrong."""
    known = Names(["c", "b"])
    for documents in itertools.product(KINDS, repeat=length) if length < 4 else _mixtures():
        ours = by_scanner(documents, names=known)
        assert differences(ours, by_expat(documents, names=known)) == [], documents


def _mixtures() -> list[tuple[bytes, ...]]:
    random = Random(1)
    return [tuple(random.choices(KINDS, k=random.randint(5, 40))) for _ in range(60)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "whole",
    [
        b"<a><b/></a>", b"<a b='c'>text</a>", b"<a><![CDATA[x]]></a>", b"<a><!-- x --></a>", b"<?p x?><a/>",
        b"<a>&amp;</a>", "<a>é😀</a>".encode(), b"<!DOCTYPE a SYSTEM 'x'><a/>",
        b"<?xml version='1.0' encoding='utf-8'?><a/>", b"  <a/>  ", b"<p:a xmlns:p='u'></p:a>",
        b"<abcdefghijklmnopqrst></abcdefghijklmnopqrst>", b"<a b='\r\n'>\r\n</a>",
    ],
)  # fmt: skip
def test_a_document_does_not_run_into_the_next(whole: bytes) -> None:
    """Cut in two or three anywhere, no part is taken for what it would be with the others."""
    for first in range(len(whole) + 1):
        assert _agree([whole[:first], whole[first:]])
        assert _agree([whole[:first], b"", whole[first:]])
        for second in range(first, len(whole) + 1, 3):
            assert _agree([whole[:first], whole[first:second], whole[second:], whole])


def _agree(documents: Sequence[bytes]) -> bool:
    return differences(by_scanner(documents), by_expat(documents)) == []


def test_space_at_the_edges_belongs_to_its_own_document() -> None:
    assert _agree([b"<a/> ", b" <a/>", b"\n<a/>\n", b" ", b"<a/>"])


def test_an_own_encoding_overrides_what_a_document_declares() -> None:
    latin = "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".encode()
    documents = [latin, latin, "<a>é</a>".encode(), "<a>é</a>".encode("utf-16-le"), b"<a/>"]
    encodings = {1: "utf-8", 2: "iso-8859-1", 3: "utf-16le"}
    ours = by_scanner(documents, encodings=encodings)
    assert differences(ours, by_expat(documents, encodings=encodings)) == []
    assert [document.string_value(0) for document in ours] == ["Ã©", "é", "Ã©", "é", ""]


@pytest.mark.parametrize("declared", ["utf-8", "UTF-16", "iso-8859-1", "klingon", "us-ascii"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_str_is_read_whatever_encoding_it_declares(declared: str, mark: str) -> None:
    text = f"{mark}<?xml version='1.0' encoding='{declared}'?><a b='é'>漢</a>"
    batch = read_batch([text, "<b>é</b>"])
    documents = [text.encode(), "<b>é</b>".encode()]
    assert differences(batch, by_expat(documents, encodings={0: "utf-8", 1: "utf-8"})) == []
    assert batch[0].attributes(0) == {"b": "é"}


def test_a_document_known_to_be_unreadable_keeps_its_place() -> None:
    reason = DocumentError("cannot be read")
    batch = Scanner(Names(), Limits(), "refuse").read([b"<a/>", b"<b/>", b"<c/>"], failed={1: reason})
    assert batch.errors == {1: reason}
    assert [len(document) for document in batch] == [1, 0, 1]
    assert [batch[0].name(0), batch[2].name(0)] == ["a", "c"]


def test_there_is_room_for_all_tags_however_they_are_counted() -> None:
    """Tags are counted in pieces of 256 KiB. Documents are one byte longer: a piece ends at each byte of `end`."""
    end = b"<b m='3' n='4'>x</b></a>"
    documents = [b"<a>".ljust((1 << 18) + 1 - len(end)) + end] * len(end)
    assert _agree(documents)
    scanner = Scanner(Names(), Limits(), "refuse")
    scanner.read(documents, borrowed=True)
    data, lent = b"".join(documents), scanner._buffers.lent
    assert (lent.tags, lent.equals) == (2 * data.count(b"<"), 2 * data.count(b"="))


def test_names_that_come_between_reads_are_known_from_then_on() -> None:
    names = Names(["a"])
    scanner = Scanner(names, Limits(), "refuse")
    document = b"<a><n0/><n1/><n2/><long-name/><n3/></a>"
    written = ["a", "n0", "n1", "n2", "long-name", "n3"]
    for come in (["n2"], [], ["long-name", "n0"], ["{uri}x"], ["n3"], ["n1"]):
        batch = scanner.read([document])
        numbers = batch.name.tolist()
        assert [batch.name_of(number) for number in numbers] == written
        assert [number < batch.known_count for number in numbers] == [name in names for name in written]
        assert [number for number in numbers if number < len(names)] == [
            names.get(name) for name in written if name in names
        ]
        for name in come:
            names.add(name)
    assert scanner.read([document]).name.tolist() == [names.get(name) for name in written]


MANY_NAMES = [b"<a n%d='%d'><m%d/></a>" % (n, n, n) for n in range(OWN_NAMES)]
LONG_NAMES = [b"<a><%b%d/></a>" % (b"n" * 1000, n) for n in range(400)]


@pytest.mark.parametrize("documents", [MANY_NAMES, LONG_NAMES, [b"<a>%b</a>" % b"".join(MANY_NAMES)]])
def test_the_kernels_table_grows_with_the_names_of_a_batch(documents: list[bytes]) -> None:
    scanner = Scanner(Names(["a"]), Limits(), "refuse")
    assert passed_on(documents, scanner) == []
    assert scanner._buffers.names.has_grown()
    assert differences(scanner.read(documents), by_expat(documents, names=scanner.names)) == []


def test_the_names_of_one_batch_are_no_burden_for_the_next() -> None:
    scanner = Scanner(Names(["a"]), Limits(), "refuse")
    many = scanner.read(MANY_NAMES)
    few = scanner.read([b"<a><b/></a>"])
    assert list(few.own_names) == ["b"]
    assert not scanner._buffers.names.has_grown()
    assert len(many.own_names) == 2 * OWN_NAMES
    assert differences(many, by_expat(MANY_NAMES, names=scanner.names)) == []


@pytest.mark.parametrize("documents", [MANY_NAMES, LONG_NAMES])
def test_more_names_than_the_kernels_table_may_hold_are_all_kept(documents: list[bytes]) -> None:
    scanner = Scanner(Names(), Limits(), "refuse", most_names=OWN_NAMES, most_name_bytes=OWN_BYTES)
    assert 0 < len(passed_on(documents, scanner)) < len(documents)
    assert differences(scanner.read(documents), by_expat(documents)) == []


@pytest.mark.parametrize("known", [(), ("a", "n7", "m7", "n8", "m8")])
def test_different_names_are_counted_by_document(known: tuple[str, ...]) -> None:
    """Whether the table has a name from the beginning, from a document before, or from nowhere."""
    limits = Limits(names=100)
    few = b"<a>%b</a>" % b"".join(b"<n%d m%d=''/>" % (n % 49, n % 50) for n in range(5000))
    many = b"<a>%b</a>" % b"".join(b"<n%d m%d=''/>" % (n % 50, n % 50) for n in range(5000))
    scanner = Scanner(Names(known), limits, "refuse")
    for documents in ([few], [many], [few, many], [many, few, many], [few, few]):
        batch = scanner.read(documents)
        assert differences(batch, by_expat(documents, names=scanner.names, limits=limits)) == []
        assert [index in batch.errors for index in range(len(documents))] == [each is many for each in documents]
    assert passed_on([few], scanner) == []


def test_prefixes_that_return_in_the_same_order_are_counted_without_expat() -> None:
    limits = Limits(names=6)
    record = b"<r xmlns:a='u' xmlns='v' xmlns:b='w'><b:c xmlns:d='x'/></r>"
    changing = b"<a>%b</a>" % b"".join(b"<b xmlns:p%d='u'/>" % (number % 4) for number in range(100))
    documents = [b"<a>%b</a>" % (record * 1000), b"<a xmlns:p0='u'/>", changing, changing.replace(b"p3", b"longer")]
    scanner = Scanner(Names(), limits, "refuse")
    batch = scanner.read(documents)
    assert differences(batch, by_expat(documents, limits=limits)) == [] and not batch.errors
    assert passed_on(documents, scanner) == [2, 3]


def test_a_name_in_the_xml_namespace_may_be_longer_than_the_kernels_room_for_it() -> None:
    """The room ends where other memory begins: nothing is written there."""
    limits = Limits(name_length=1 << 20)
    documents = [
        b"<a xml:%b='1'><xml:%b/></a>" % (b"b" * size, b"c" * size) for size in (100, 8000, 8190, 9000, 500_000)
    ]
    scanner = Scanner(Names(), limits, "refuse")
    whole = np.zeros(1 << 20, dtype=np.uint8)
    scanner._buffers.scratch = scanner._buffers.scratch._replace(spelling=whole[:8192])
    assert differences(scanner.read(documents), by_expat(documents, limits=limits)) == []
    assert not whole[8192:].any()


def test_names_made_to_collide_are_read() -> None:
    """As names of the batch's own, as known ones, and in a namespace; a table of bounded size."""
    names = colliding_names(150)
    documents = [
        b"<a>%b</a>" % b"".join(b"<%b/>" % name.encode() for name in names),
        *(b"<%b/>" % n.encode() for n in names),
    ]
    assert 0 < len(passed_on(documents)) < len(documents)
    assert _agree(documents)
    known = Names([*names, "a", "b"])
    assert len(NameTable(known).index.slots) <= 128 * (len(known) + OWN_NAMES)
    assert differences(by_scanner(documents, names=known), by_expat(documents, names=known)) == []
    scanner = Scanner(known, Limits(), "refuse")
    assert passed_on([b"<a><b/><c/></a>"], scanner) == [], "documents without such names are read as ever"


def test_names_that_crowd_the_table_are_felt_for_two_batches_at_most() -> None:
    scanner = Scanner(Names(["a"]), Limits(), "refuse")
    crowd = crowding_names(len(scanner._buffers.names.index.slots), OWN_NAMES - 250)
    scanner.read([b"<a>%b</a>" % b"".join(b"<%b/>" % name.encode() for name in crowd)])
    ordinary = [b"<order%d><item%d/></order%d>" % (n, n, n) for n in range(100)]
    assert len(passed_on(ordinary, scanner)) > 10, "they do crowd it"
    assert passed_on(ordinary, scanner) == []


def test_a_batch_keeps_its_names_when_the_table_begins_anew() -> None:
    scanner = Scanner(Names(["a"]), Limits(), "refuse")
    rounds = [[b"<a><n%d/><m%d/></a>" % (n, n) for n in range(first, first + 700)] for first in range(0, 7000, 700)]
    batches = [scanner.read(documents) for documents in rounds]
    for documents, batch in zip(rounds, batches, strict=True):
        assert differences(batch, by_expat(documents, names=scanner.names)) == []


@pytest.mark.parametrize("field", ["depth", "size", "attributes", "names", "name_length"])
@pytest.mark.parametrize("value", [1 << 31, 1 << 40, 1 << 70])
def test_limits_may_be_as_large_as_anybody_likes(field: str, value: int) -> None:
    documents = [
        b"<a>" * 5000 + b"</a>" * 5000,
        b"<a%b/>" % b"".join(b" b%d=''" % n for n in range(4097)),
        b"<%b/>" % (b"n" * 5000),
    ]
    limits = Limits(**{field: value})
    assert differences(by_scanner(documents, limits=limits), by_expat(documents, limits=limits)) == []


def test_known_names_may_be_added_between_batches() -> None:
    names = Names(["a"])
    scanner = Scanner(names, Limits(), "refuse")
    for added in ("b", "c", "{u}d", "x" * 40):
        names.add(added)
        documents = [b"<a b='1'><c/><d xmlns='u'/><%b/></a>" % (b"x" * 40)]
        assert differences(scanner.read(documents), by_expat(documents, names=names)) == []


def test_a_borrowed_batch_says_the_same_until_the_next_read() -> None:
    scanner = Scanner(Names(["a", "x"]), Limits(), "refuse")
    for seed in range(6):
        documents = mutations(seed, 150)
        batch = scanner.read(documents, borrowed=True)
        assert differences(batch, by_expat(documents, names=scanner.names)) == []
    kept = scanner.read(documents)
    scanner.read([b"<y>z</y>"] * 200, borrowed=True)
    assert differences(kept, by_expat(documents, names=scanner.names)) == [], "a batch that is not borrowed lasts"


@pytest.mark.slow
def test_two_threads_read_with_one_scanner() -> None:
    names = Names(["a", "b"])
    scanner = Scanner(names, Limits(), "refuse")
    rounds = [mutations(seed, 300) for seed in range(8)]
    expected = [by_expat(documents, names=names) for documents in rounds]
    found: list[list[str]] = []

    def read(first: int) -> None:
        for number in [*range(first, 8), *range(first)] * 3:
            batch = scanner.read(rounds[number], borrowed=number % 2 == 0)
            found.append(differences(batch, expected[number]))

    threads = [threading.Thread(target=read, args=(first,)) for first in (0, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 48


def _data(documents: Sequence[bytes]) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(b"".join(documents) + bytes(PADDING), dtype=np.uint8)


def test_data_are_read_where_they_lie() -> None:
    documents = [b"<a>x</a>", b"wrong", b"<b y='z'/>"]
    scanner = Scanner(Names(), Limits(), "refuse")
    offsets = np.cumsum([0, *map(len, documents)])
    assert differences(scanner.read_data(_data(documents), offsets), by_expat(documents)) == []
    part = scanner.read_data(_data([b"<<<", *documents, b"<c/>"]), offsets + 3)
    assert [part[index].data for index in range(3)] == documents
    assert part[0].string_value(0) == "x"
    assert part[2].attributes(0) == {"y": "z"}


@pytest.mark.parametrize(
    ("data", "offsets"),
    [
        (b"<a/>", [0, 4]), (b"<a/>" + bytes(15), [0, 4]), (b"<a/>" + bytes(16), [0, 5]),
        (b"<a/>" + bytes(15) + b"x", [0, 4]), (b"<a/>" + bytes(16), [0, 4, 2]), (b"<a/>" + bytes(16), [-4, 4]),
        (b"<a/>" + bytes(16), []), (b"", [0]),
    ],
)  # fmt: skip
def test_data_that_do_not_end_as_agreed_are_refused(data: bytes, offsets: list[int]) -> None:
    """The kernel trusts them: it must not see them."""
    scanner = Scanner(Names(), Limits(), "refuse")
    with pytest.raises(ValueError, match="16 zero bytes"):
        scanner.read_data(np.frombuffer(data, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def _lent_bytes(scanner: Scanner) -> int:
    return sum(array.nbytes for array in scanner._buffers.lent.arrays)


def test_room_for_rows_follows_what_can_be_well_formed() -> None:
    scanner = Scanner(Names(), Limits(), "refuse")
    for document in (b"<" * 3_000_000, b"=" * 3_000_000, b"<a" * 1_500_000, b"<a>" * 1_000_000):
        scanner.read([document], borrowed=True)
    assert _lent_bytes(scanner) < 48 * 3_000_000


def test_room_for_rows_follows_the_largest_documents_not_their_sequence() -> None:
    scanner = Scanner(Names(), Limits(), "refuse")
    scanner.read([b"<a>%b</a>" % bytes(b" " * 1_000_000)], borrowed=True)
    for power in range(15):
        scanner.read([b"<a>%b</a>" % (b"<b/>" * (3 << power))], borrowed=True)
    assert _lent_bytes(scanner) < 48 * 1_000_000
