"""The W3C's XML conformance suite: reject documents that are not well-formed, read the others as expat does.

Rejected for a stated reason, well-formed or not:

- XML other than 1.0;
- a document that declares entities; with `entities="expand"` only one that declares an external parameter entity;
- a document that refers to an external entity, or to one that only an external subset could declare: none is read;
- names that only the fifth edition of XML 1.0 allows, and colons against the rules of namespaces: expat rejects them.

A document that is not well-formed may be read in one case only: the suite says (ENTITIES) that the fault lies in an
external entity, and the document alone, as bare expat sees it, has none.

The scanner and the expat reader agree on every file of the suite, each alone and all in one batch.
"""

from operator import attrgetter

import pytest

from pathcast.documents import Limits, Names, read
from pathcast.documents.expat_reader import Entities
from pathcast.documents.scanner.scanner import Scanner
from pathcast.errors import DocumentError
from tests.conformance import ElementFacts, Entry, Facts, archive, entries, facts, files
from tests.documents.equivalence import by_expat, by_scanner, differences, passed_on

if archive() is None:
    pytest.skip("no xmlconf.tgz in the folder PATHCAST_DATA or in ../shared/data", allow_module_level=True)

BROKEN = tuple(entry for entry in entries() if entry.kind == "not-wf")
SOUND = tuple(entry for entry in entries() if entry.kind in {"valid", "invalid"})
DOUBTFUL = tuple(entry for entry in entries() if entry.kind == "error")

both_modes = pytest.mark.parametrize("mode", ["refuse", "expand"])


def test_the_suite_is_whole() -> None:
    assert len(BROKEN) > 1400
    assert len(SOUND) > 1000
    assert len(BROKEN) + len(SOUND) + len(DOUBTFUL) == len(entries())


@pytest.mark.slow
@both_modes
@pytest.mark.parametrize("entry", BROKEN, ids=attrgetter("id"))
def test_what_is_not_well_formed_is_refused(entry: Entry, mode: str) -> None:
    data = files()[entry.path]
    outcome = outcome_of(data, mode)
    if entry.entities != "none" and not isinstance(outcome, str):
        assert outcome == facts(data).elements
        assert facts(data).well_formed
    else:
        assert isinstance(outcome, str)


@pytest.mark.slow
@both_modes
@pytest.mark.parametrize("entry", SOUND, ids=attrgetter("id"))
def test_what_is_well_formed_is_read_or_refused_for_a_stated_reason(entry: Entry, mode: str) -> None:
    data = files()[entry.path]
    found = facts(data)
    outcome = outcome_of(data, mode)
    if reasons := reasons_to_refuse(found, mode):
        assert isinstance(outcome, str)
        assert any(reason in outcome for reason in reasons)
    elif not found.well_formed:
        assert isinstance(outcome, str)
        assert entry.editions == ("5",) or not entry.namespaces
    else:
        assert outcome == found.elements


@pytest.mark.slow
@both_modes
@pytest.mark.parametrize("entry", DOUBTFUL, ids=attrgetter("id"))
def test_what_readers_may_refuse_is_read_as_expat_reads_it_if_at_all(entry: Entry, mode: str) -> None:
    data = files()[entry.path]
    found = facts(data)
    outcome = outcome_of(data, mode)
    if found.well_formed and not reasons_to_refuse(found, mode):
        assert outcome == found.elements
    else:
        assert isinstance(outcome, str)


@pytest.mark.slow
@both_modes
def test_the_scanner_agrees_with_the_expat_reader_on_all_documents_in_one_batch(mode: Entities) -> None:
    documents = list(files().values())
    assert len(documents) > 2500
    assert differences(by_scanner(documents, entities=mode), by_expat(documents, entities=mode)) == []
    documents.reverse()
    assert differences(by_scanner(documents, entities=mode), by_expat(documents, entities=mode)) == []
    assert len(documents) - len(passed_on(documents)) > 500, "the kernel itself reads hundreds of them"


@pytest.mark.slow
@both_modes
def test_the_scanner_agrees_with_the_expat_reader_on_each_document_alone(mode: Entities) -> None:
    scanner = Scanner(Names(), Limits(), mode)
    for path, document in files().items():
        assert differences(scanner.read([document]), by_expat([document], entities=mode)) == [], path


def reasons_to_refuse(found: Facts, mode: str) -> list[str]:
    """Words of the reasons for which a document must be rejected, well-formed or not."""
    reasons = []
    if found.version != "1.0":
        reasons.append(f"XML {found.version} is not supported")
    if found.declares_external_dtd or (found.declares_entities and mode == "refuse"):
        reasons.append("declares the entity")
    if found.refers_outside:
        reasons += [
            "refers to the external entity",
            "refers to the undeclared entity",
            "refers to the parameter entity",
        ]
    return reasons


def outcome_of(data: bytes, mode: str) -> str | list[ElementFacts]:
    """The elements as Pathcast reads them, or the reason why it does not."""
    try:
        document = read(data, entities="expand" if mode == "expand" else "refuse")
    except DocumentError as error:
        return error.reason
    return [
        ElementFacts(
            document.name(element), document.parent(element), document.attributes(element), document.text_nodes(element)
        )
        for element in range(len(document))
    ]
