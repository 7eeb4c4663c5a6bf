"""Forged manifests: any JSON, with a valid checksum."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.store.snapshot import MANIFEST, _text


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a snapshot, unchecked and without its checksum."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del manifest["checksum"]
    return manifest


def forge(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of a snapshot by a valid one with this content."""
    (folder / MANIFEST).write_bytes(_text(manifest))
