"""The scanner and the expat reader agree on nearly valid documents, and on random bytes.

A round is a batch of mutated documents, so that errors could affect neighbours; rounds differ in limits, known names
and the treatment of entities. On a difference, the documents are reduced as far as they still differ.
"""

import functools
from typing import Any

import pytest

from pathcast.documents import Limits, Names
from pathcast.documents.expanded_name_table import XML_NAMESPACE
from pathcast.documents.expat_reader import Entities
from tests.documents import equivalence
from tests.documents.equivalence import by_expat, by_scanner, differences, passed_on, shrunk
from tests.documents.mutations import mutations, seeds

A_ROUND = 1000
ROUNDS, LONG_ROUNDS = 12, 1000
KNOWN = ("a", "b", "x", "{urn:u}a", "{u}b", "abcdefgh", "abcdefghijklmnop", f"{{{XML_NAMESPACE}}}lang")
TIGHT = Limits(depth=4, size=300, attributes=3, names=4, name_length=8)


def settings(seed: int) -> tuple[Names, Limits, Entities]:
    """Each combination of them in six rounds."""
    names = Names(KNOWN if seed % 2 else ())
    return names, TIGHT if seed % 3 == 2 else Limits(), "expand" if seed % 3 == 1 else "refuse"


def disagreements(seed: int, documents: list[bytes]) -> list[str]:
    names, limits, entities = settings(seed)
    ours = by_scanner(documents, names=names, limits=limits, entities=entities)
    return differences(ours, by_expat(documents, names=names, limits=limits, entities=entities))


@pytest.mark.slow
def test_the_scanner_agrees_with_the_expat_reader(seed: int) -> None:
    documents = mutations(seed, A_ROUND)
    if disagreements(seed, documents):
        small = shrunk(documents, lambda fewer: bool(disagreements(seed, fewer)))
        pytest.fail(f"on {small!r}:\n  " + "\n  ".join(disagreements(seed, small)))


def test_the_scanner_itself_decides_a_fair_share() -> None:
    """Otherwise expat would mostly be compared with expat."""
    documents = mutations(1, 2 * A_ROUND)
    wrong = len(by_expat(documents).errors)
    decided = len(documents) - len(passed_on(documents))
    assert decided > len(documents) / 5
    assert wrong > len(documents) / 5
    assert decided > 0.9 * (len(documents) - wrong), "what is right is rarely passed on"


def test_seeds_are_right_and_most_are_read_by_the_kernel() -> None:
    for family in ("written", "drawn", "news", "nitf"):
        documents = list(seeds(family))
        assert not by_expat(documents, entities="expand").errors
        assert len(passed_on(documents)) < len(documents) / 2


def test_a_difference_is_reported_as_few_short_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a scanner that reads documents with an empty comment as empty, what is left is the comment."""
    honest = equivalence.by_scanner

    @functools.wraps(honest)
    def wrong(documents: list[bytes], **settings: Any) -> object:
        return honest([b"" if b"<!---->" in each else each for each in documents], **settings)

    monkeypatch.setitem(globals(), "by_scanner", wrong)
    with pytest.raises(pytest.fail.Exception) as caught:
        test_the_scanner_agrees_with_the_expat_reader(0)
    assert "on [b'<!---->']" in str(caught.value)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test a round: twelve thousand mutations, or a million with `--long`."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(LONG_ROUNDS if metafunc.config.getoption("--long") else ROUNDS))
