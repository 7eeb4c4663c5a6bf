"""Pairs of real document formats with the truth about which of their nodes correspond.

Each file in `schema_pairs` is a document of one format (UBL, CII, openTRANS, cXML, RSS, Atom, MODS, JATS, xCard, …,
written from the formats' specifications) with fields instead of values: `{seller.city}`, or `{issued|%Y%m%d}` in the
form that the format writes. Two formats of one domain are a pair; their nodes with the same field correspond.

    each="lines"     the element repeats, once per record of this field; fields inside belong to that record
    is="seller"      the element itself is this thing: elements of both formats with the same mark correspond
    maybe="0.7"      the element is present in 7 of 10 documents
    {currency'}      a further place of a field, which is not part of the truth

The three course catalogues of universities are pairs with a truth of their own, where their files exist.

Invariant: the truth is one to one; the same seed gives the same documents.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Literal
from xml.etree import ElementTree

from .schema_pair_records import RECORDS, HalfPools, Record

FOLDER = Path(__file__).parent / "schema_pairs"


@dataclass(frozen=True, slots=True)
class SchemaPair:
    """Sample documents of two formats, and which nodes of the first correspond to which of the second."""

    domain: str
    first: str
    second: str
    first_samples: tuple[bytes, ...]
    second_samples: tuple[bytes, ...]
    truth: Mapping[str, str]

    @property
    def name(self) -> str:
        """Both formats."""
        return f"{self.first} - {self.second}"


Items = Literal["same", "alike", "different"]


def schema_pairs(documents: int = 12, seed: int = 0, items: Items = "alike") -> list[SchemaPair]:
    """All pairs of formats.

    Both formats have the same items (twins), items of their own with values from the same pools, or different ones:
    values from separate pools, and optional elements more or less often.
    """
    formats: dict[str, list[Path]] = {}
    for file in sorted(FOLDER.glob("*.xml")):
        formats.setdefault(file.stem.partition("_")[0], []).append(file)
    return [
        _pair(domain, first, second, documents, seed, items)
        for domain, files in formats.items()
        for first, second in combinations(files, 2)
    ]


def _pair(domain: str, first: Path, second: Path, documents: int, seed: int, items: Items) -> SchemaPair:
    samples: list[tuple[bytes, ...]] = []
    for half, file in enumerate((first, second)):
        whose = "" if items == "same" else file.stem
        made = []
        for number in range(documents):
            draw = f"{seed} {whose} {number}"
            random = HalfPools(draw, half) if items == "different" else Random(draw)
            rarer = 2.0 if items == "different" and half else 1.0
            made.append(document_of(file, RECORDS[domain](random), Random(draw), rarer))
        samples.append(tuple(made))
    fields = fields_of(first), fields_of(second)
    truth = {fields[0][field]: fields[1][field] for field in fields[0] if field in fields[1]}
    return SchemaPair(domain, first.stem, second.stem, samples[0], samples[1], truth)


def fields_of(file: Path) -> dict[str, str]:
    """The node of each field and mark of a format."""
    found: dict[str, str] = {}

    def note(text: str | None, scope: str, path: str) -> None:
        if text and text.strip().startswith("{"):
            field = text.strip()[1:-1].partition("|")[0]
            if not field.endswith("'"):
                known = found.setdefault(f"{scope}{field}", path)
                assert known == path, f"{file.name}: {field} is at {known} and at {path}; mark one with '"

    def walk(element: ElementTree.Element, above: str, scope: str) -> None:
        path = f"{above}/{element.tag}" if above else element.tag
        each = element.get("each")
        scope = f"{scope}{each}." if each else scope
        if mark := element.get("is"):
            found[f"is {mark}"] = path
        for name, value in element.attrib.items():
            if name not in ("each", "is", "maybe"):
                note(value, scope, f"{path}/@{name}")
        note(element.text, scope, path)
        for child in element:
            walk(child, path, scope)

    root = ElementTree.parse(file).getroot()
    walk(root, "", "")
    found["is root"] = root.tag
    return found


def document_of(file: Path, record: Record, random: Random, rarer: float = 1.0) -> bytes:
    """A document of a format, filled with a record; `rarer`: an exponent of the shares of optional elements."""
    (root,) = _filled(ElementTree.parse(file).getroot(), record, random, rarer)
    return ElementTree.tostring(root, encoding="unicode").encode()


def _filled(
    element: ElementTree.Element, record: Record, random: Random, rarer: float
) -> Iterator[ElementTree.Element]:
    attributes = dict(element.attrib)
    attributes.pop("is", None)
    if random.random() >= float(attributes.pop("maybe", "1")) ** rarer:
        return
    each = attributes.pop("each", None)
    for inside in [record] if each is None else record[each]:
        made = ElementTree.Element(element.tag)
        known = {**record, **inside}
        for name, value in attributes.items():
            made.set(name, _value(value, known))
        made.text = _value((element.text or "").strip(), known)
        for child in element:
            made.extend(_filled(child, known, random, rarer))
        yield made


def _value(text: str, record: Record) -> str:
    if not text.startswith("{"):
        return text
    field, _, form = text[1:-1].partition("|")
    value = record[field.rstrip("'")]
    if isinstance(value, datetime):
        return value.strftime(form or "%Y-%m-%d")
    if form == ",":
        return str(value).replace(".", ",")
    return f"{value}{form.removeprefix('+')}"


_COURSES: dict[tuple[str, str], str] = {
    ("reed", "wsu"): """
        course=course course/reg_num=course/sln course/subj=course/prefix course/crse=course/crs course/sect=course/sect
        course/title=course/title course/units=course/credit course/instructor=course/instructor course/days=course/days
        course/time=course/times course/time/start_time=course/times/start course/time/end_time=course/times/end
        course/place=course/place course/place/building=course/place/bldg course/place/room=course/place/room""",
    ("reed", "uwm"): """
        course=course_listing course/title=course_listing/title course/units=course_listing/credits
        course/sect=course_listing/section_listing/section course/days=course_listing/section_listing/days
        course/instructor=course_listing/section_listing/instructor course/time=course_listing/section_listing/hours
        course/time/start_time=course_listing/section_listing/hours/start
        course/time/end_time=course_listing/section_listing/hours/end
        course/place=course_listing/section_listing/bldg_and_rm
        course/place/building=course_listing/section_listing/bldg_and_rm/bldg
        course/place/room=course_listing/section_listing/bldg_and_rm/rm""",
    ("wsu", "uwm"): """
        course=course_listing course/title=course_listing/title course/credit=course_listing/credits
        course/sect=course_listing/section_listing/section course/days=course_listing/section_listing/days
        course/instructor=course_listing/section_listing/instructor course/times=course_listing/section_listing/hours
        course/times/start=course_listing/section_listing/hours/start
        course/times/end=course_listing/section_listing/hours/end
        course/place=course_listing/section_listing/bldg_and_rm
        course/place/bldg=course_listing/section_listing/bldg_and_rm/bldg
        course/place/room=course_listing/section_listing/bldg_and_rm/rm""",
}


def course_pairs(folder: Path) -> list[SchemaPair]:
    """The pairs of the course catalogues of three universities, each one document, in a folder."""
    documents = {name: (folder / f"{name}.xml").read_bytes() for name in ("reed", "wsu", "uwm")}
    return [
        SchemaPair(
            "course",
            first,
            second,
            (documents[first],),
            (documents[second],),
            {"root": "root"}
            | {f"root/{here}": f"root/{there}" for here, there in (pair.split("=") for pair in text.split())},
        )
        for (first, second), text in _COURSES.items()
    ]
