import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pathcast_lab.engine import reading_experiments as reading
from pathcast_lab.harness import CheckError, Experiment, Rows, Verdict, find, perform

READERS = ["pathcast", "pathcast, on expat", "lxml", "ElementTree", "expat, empty callbacks", "bare expat"]
TRICKY = [
    b"<!-- no --><a x='1' y='&#228;'>one<!-- no --><b xmlns='urn:b' z=''/>t&amp;o<![CDATA[<three>]]><?no text?></a>",
    '<?xml version="1.0" encoding="ISO-8859-1"?><n:a xmlns:n="urn:n" n:x="ä">ä</n:a>'.encode("latin-1"),
]


@pytest.fixture
def experiment() -> Experiment:
    return find(["reading"])[0]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path))
    return tmp_path


def pack_nitf(folder: Path, documents: list[bytes]) -> None:
    (folder / "nitf").mkdir()
    with tarfile.open(folder / "nitf" / "documents.tgz", "w:gz") as tar:
        for number, content in enumerate(documents):
            member = tarfile.TarInfo(f"xml/outFile{number}.xml")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_without_outside_data_generated_documents_are_read_by_all(experiment: Experiment, data: Path) -> None:
    result = perform(experiment, changes=["documents=3", "rounds=1"])
    assert [(row["source"], row["reader"]) for row in result.rows] == [("generated news", name) for name in READERS]
    assert result.rows.distinct("documents") == [3]
    assert any("PATHCAST_DATA" in note for note in result.notes)
    assert result.rows.number("times_expat", reader="bare expat") == 1


def test_nitf_documents_are_read_too_when_they_are_there(experiment: Experiment, data: Path) -> None:
    pack_nitf(data, TRICKY)
    result = perform(experiment, changes=["documents=2", "rounds=1"])
    assert result.rows.distinct("source") == ["generated news", "NITF"]
    assert result.rows.one(source="NITF", reader="lxml")["megabytes"] == sum(map(len, TRICKY)) / 1e6
    assert not any("PATHCAST_DATA" in note for note in result.notes)


def test_the_check_counts_elements_attributes_and_text_alike_in_every_reader() -> None:
    seen = reading._seen(TRICKY)
    assert set(seen) == {"pathcast", "pathcast, on expat", "lxml", "ElementTree", "bare expat"}
    for answers in seen.values():
        assert answers == [(2, 3, "onet&o<three>"), (1, 1, "ä")]


def test_a_reader_that_sees_something_else_gets_no_times(
    experiment: Experiment, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = reading._seen_in_tree

    def blind(elements: Any) -> reading.Seen:
        count, attributes, text = honest(elements)
        return count, attributes, text[1:]

    monkeypatch.setattr(reading, "_seen_in_tree", blind)
    with pytest.raises(CheckError, match="all readers see the same elements, attributes and text: bare expat"):
        perform(experiment, changes=["documents=2", "rounds=1"])


@pytest.mark.parametrize(("speed", "held"), [(170, True), (120, True), (250, True), (100, False), (300, False)])
def test_bare_expat_is_held_against_its_speed_within_a_factor(experiment: Experiment, speed: int, held: bool) -> None:
    rows = Rows([{"source": "NITF", "reader": "bare expat", "mb_per_s": speed, "times_expat": 1.0}])
    of_expat, *of_callbacks = [claim.judge_rows(rows).verdict for claim in experiment.claims]
    assert of_expat is (Verdict.HELD if held else Verdict.NOT_HELD)
    assert set(of_callbacks) == {Verdict.NOT_MEASURABLE}


@pytest.mark.parametrize(
    ("slowdown", "verdict"), [(2.4, Verdict.HELD), (1.7, Verdict.NOT_HELD), (3.1, Verdict.NOT_HELD)]
)
def test_callbacks_are_held_against_bare_expat(experiment: Experiment, slowdown: float, verdict: Verdict) -> None:
    row = {"source": "NITF", "reader": "expat, empty callbacks", "mb_per_s": 70.0, "times_expat": slowdown}
    judgement = experiment.claims[3].judge_rows(Rows([row]))
    assert (judgement.verdict, judgement.measured) == (verdict, f"{slowdown:.2f} times on NITF")


@pytest.mark.parametrize(("slowest", "verdict"), [(499, Verdict.NOT_HELD), (500, Verdict.HELD)])
def test_our_reader_reaches_its_target_only_if_it_does_on_every_kind_of_documents(
    experiment: Experiment, slowest: int, verdict: Verdict
) -> None:
    rows = Rows(
        {"source": name, "reader": "pathcast", "mb_per_s": speed} for name, speed in (("a", slowest), ("b", 900))
    )
    assert experiment.claims[-1].judge_rows(rows).verdict is verdict
