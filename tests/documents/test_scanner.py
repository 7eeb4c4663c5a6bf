"""The scanner against the expat reader, rule by rule; the batches are the same, whichever reader decides."""

import pytest

from pathcast.documents import Limits
from tests.documents.equivalence import by_expat, by_scanner, differences, passed_on
from tests.documents.rules import PASSED_ON, READ, WRONG


@pytest.mark.parametrize("rule", READ)
def test_the_kernel_alone_reads_what_it_has_a_rule_for(rule: str) -> None:
    for document in READ[rule]:
        ours = by_scanner([document])
        assert not ours.errors, document
        assert passed_on([document]) == [], document
        assert differences(ours, by_expat([document])) == [], document


@pytest.mark.parametrize("rule", PASSED_ON)
def test_what_has_no_fast_path_is_read_all_the_same(rule: str) -> None:
    for document in PASSED_ON[rule]:
        ours = by_scanner([document])
        assert not ours.errors, document
        assert passed_on([document]) == [0], document
        assert differences(ours, by_expat([document])) == [], document


@pytest.mark.slow
@pytest.mark.parametrize("rule", WRONG)
def test_what_is_wrong_is_refused_in_expats_words(rule: str) -> None:
    for document in WRONG[rule]:
        ours = by_scanner([document])
        assert list(ours.errors) == [0], document
        assert differences(ours, by_expat([document])) == [], document


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*dict.fromkeys((*READ, *PASSED_ON, *WRONG))])
def test_all_documents_of_a_rule_make_one_batch(rule: str) -> None:
    documents = [each for group in (READ, WRONG, PASSED_ON) for each in group.get(rule, [])]
    assert differences(by_scanner(documents), by_expat(documents)) == []
    documents.reverse()
    assert differences(by_scanner(documents), by_expat(documents)) == []


@pytest.mark.slow
@pytest.mark.parametrize("document", [each for rule in READ.values() for each in rule if 20 < len(each) < 60][::5])
def test_a_document_cut_anywhere_is_wrong_or_as_expat_reads_it(document: bytes) -> None:
    cuts = [document[:end] for end in range(len(document) + 1)]
    assert differences(by_scanner(cuts), by_expat(cuts)) == []
    rests = [document[begin:] for begin in range(len(document) + 1)]
    assert differences(by_scanner(rests), by_expat(rests)) == []
    both = [half for cut in range(len(document)) for half in (document[:cut], document[cut:])]
    assert differences(by_scanner(both), by_expat(both)) == []


LIMITS = Limits(depth=3, size=40, attributes=2, name_length=4)


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        (b"<a><b><c/></b></a>", ""), (b"<a><b><c><d/></c></b></a>", "depth"), (b"<a><b><c></c><d></d></b></a>", ""),
        (b"<a>%b</a>" % (b"x" * 33), ""), (b"<a>%b</a>" % (b"x" * 34), "size"), (b"<a b='' c=''/>", ""),
        (b"<a b='' c='' d=''/>", "attributes"), (b"<a b='' c='' xmlns='u' xmlns:p='v'/>", ""), (b"<abcd/>", ""),
        (b"<abcde/>", "name_length"), (b"<a bcdef=''/>", "name_length"), (b"<prefix:abcd xmlns:prefix='u'/>", ""),
        (b"<p:abcde xmlns:p='u'/>", "name_length"), (b"<a abcd=''/>", ""), (b"<?abcdef?><a/>", ""),
        (b"<!DOCTYPE abcdef><a/>", ""), ("<éééé/>".encode(), ""),
    ],
)  # fmt: skip
def test_limits_are_those_of_the_expat_reader(document: bytes, limit: str) -> None:
    batch = by_scanner([document, b"<a/>"], limits=LIMITS)
    assert differences(batch, by_expat([document, b"<a/>"], limits=LIMITS)) == []
    assert ([f"Limits({limit}=…)" in error.reason for error in batch.errors.values()]) == [True] * bool(limit)
