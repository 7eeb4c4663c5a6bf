"""Damaged or forged indexes: whatever a folder holds, `open_index` raises `SnapshotError` and nothing else.

Damage is detected in any index. A forged index has valid checksums: then its manifest may have any content, and with
`trusted=False` its arrays may have any content, too (`tests/matching/test_subscriptions_of_untrusted_index.py`).
"""

import copy
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import pathcast
from pathcast import SnapshotError
from pathcast.store.snapshot import MANIFEST
from tests.store.forged import forge, manifest_of

EXPRESSIONS = [
    "/a/b", "a//c", "//*/c", "/a[b][c]", "//b[@x = 'u']/c", "/a[@y > 3]//b", "//c[contains(., 'v') or not(d)]",
    "/f:a/b", "//f:c[d/e = 'w']", "//a[starts-with(b, 'x')]", "/a[.//b[@x != '1' and c < 7]]", "/a/b", "/",
]  # fmt: skip
JUNK: list[Any] = [
    None, True, 0, -1, 1 << 31, 1 << 70, 1.5, float("nan"), "", "x", "\0", "../../x", "é" * 1000, [], [[]], [None],
    {}, {"a": 1}, {"": ""}, {"f": "\ufffd"}, ["automaton"], "|O", "<i8", [1 << 62, 4], "ignore",
]  # fmt: skip
DAMAGES, FORGERIES = (300, 100_000), (400, 50_000)  # without and with --long


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    subscriptions = pathcast.Subscriptions({"f": "urn:f"})
    subscriptions.add_many(EXPRESSIONS, [None if at % 3 else f"s{at}" for at in range(len(EXPRESSIONS))])
    subscriptions.remove(4)
    matcher = subscriptions.compile()
    matcher.match("<a y='4'><b x='u'><c>v</c></b><c/></a>")
    matcher.save(tmp_path / "index")
    return tmp_path / "index"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of a value in JSON."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, below in value.items():
            yield from places(below, (*path, name))
    elif isinstance(value, list):
        for at, below in enumerate(value):
            yield from places(below, (*path, at))


def changed(manifest: dict[str, Any], random: Random) -> dict[str, Any]:
    """A manifest with something missing, in another's place, or replaced by junk."""
    found = copy.deepcopy(manifest)
    for _ in range(random.choice((1, 1, 1, 3))):
        known = list(places(found))
        part = random.choice(known)[0]  # most places are in arrays
        *way, last = random.choice([path for path in known if path[0] in (part, "facts")])
        holder: Any = found
        for step in way:
            holder = holder[step]
        if random.random() < 0.3:
            del holder[last]
        else:
            other = random.choice([*holder.values()] if isinstance(holder, dict) else holder)
            holder[last] = copy.deepcopy(random.choice([*JUNK, other, other, other]))
    return found


@pytest.mark.slow
def test_damage_anywhere_in_an_index_is_found(index: Path, request: pytest.FixtureRequest) -> None:
    random = Random(5)
    files = sorted(file for file in index.rglob("*") if file.is_file() and file.stat().st_size)
    for number in range(DAMAGES[request.config.getoption("--long")]):
        file = files[number % len(files)]
        content = file.read_bytes()
        at = random.randrange(min(len(content), 1 << random.randrange(4, 16)))
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :])
        with pytest.raises(SnapshotError):
            pytest.fail(f"{file.name}, byte {at}: {pathcast.open_index(index, trusted=random.random() < 0.8)}")
        file.write_bytes(content)
    pathcast.open_index(index)


@pytest.mark.slow
def test_a_forged_manifest_is_an_answer_or_an_error_of_the_snapshot(
    index: Path, request: pytest.FixtureRequest
) -> None:
    random, manifest = Random(7), manifest_of(index)
    opened = 0
    for _ in range(FORGERIES[request.config.getoption("--long")]):
        forge(index, changed(manifest, random))
        with suppress(SnapshotError):
            pathcast.open_index(index, trusted=False)
            opened += 1
    assert opened


@pytest.mark.slow
def test_an_index_that_lacks_a_fact_or_an_array_is_an_error_of_the_snapshot(index: Path) -> None:
    manifest = manifest_of(index)
    for part in ("facts", "arrays"):
        for name in manifest[part]:
            forge(index, manifest | {part: {key: value for key, value in manifest[part].items() if key != name}})
            with suppress(SnapshotError):
                pathcast.open_index(index)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"format": "pathcast-snapshot", "version": 2, "kind": "\\ud800"}', id="a surrogate"),
        pytest.param(b'{"format": "pathcast-snapshot", "version": 1, "kind": "\\ud800"}', id="an old one"),
    ],
)
def test_a_manifest_that_is_none_is_an_error_of_the_snapshot(index: Path, manifest: bytes, trusted: bool) -> None:
    (index / MANIFEST).write_bytes(manifest)
    with pytest.raises(SnapshotError):
        pathcast.open_index(index, trusted=trusted)


def test_an_index_from_strangers_is_always_verified(index: Path) -> None:
    file = max(index.glob("data-*/subscriptions_*"), key=lambda file: file.stat().st_size)
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(SnapshotError, match="does not match its checksum"):
        pathcast.open_index(index, trusted=False, verify=False)


def test_arguments_are_no_error_of_the_snapshot(index: Path) -> None:
    with pytest.raises(TypeError):
        pathcast.open_index(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"limits must be Limits\(…\) or None, got 3"):
        pathcast.open_index(index, limits=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="entities must be 'refuse' or 'expand', got 'x'"):
        pathcast.open_index(index, entities="x")  # type: ignore[arg-type]
