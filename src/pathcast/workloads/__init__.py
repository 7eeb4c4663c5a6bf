"""Workloads: documents and subscriptions generated from our schemas or any DTD.

See README.md in this folder.
"""

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from pathcast.documents.schema import Schema, read_dtd
from pathcast.workloads.document_generator import generate_documents
from pathcast.workloads.generation_options import DocumentOptions, SubscriptionOptions
from pathcast.workloads.subscription_generator import assign_subscribers, generate_subscriptions
from pathcast.workloads.value_pools import Values

__all__ = [
    "DocumentOptions",
    "SubscriptionOptions",
    "Values",
    "assign_subscribers",
    "astronomy_schema",
    "auction_schema",
    "bibliography_schema",
    "generate_documents",
    "generate_subscriptions",
    "news_dtd",
    "news_schema",
    "protein_schema",
    "schema_from_dtd",
    "treebank_schema",
]


def news_dtd() -> bytes:
    """The text of our news DTD."""
    return _dtd("news")


def _dtd(name: str) -> bytes:
    return files(__name__).joinpath(f"{name}.dtd").read_bytes()


@cache
def news_schema() -> Schema:
    """The schema of our news DTD."""
    return read_dtd(news_dtd())


@cache
def protein_schema() -> Schema:
    """The schema of our protein DTD: flat, not recursive, with few different paths."""
    return read_dtd(_dtd("protein"))


@cache
def astronomy_schema() -> Schema:
    """The schema of our astronomy DTD: fixed parts, and some nested text."""
    return read_dtd(_dtd("astronomy"))


@cache
def auction_schema() -> Schema:
    """The schema of our auction DTD: shaped like XMark's, one notice per document."""
    return read_dtd(_dtd("auction"))


@cache
def treebank_schema() -> Schema:
    """The schema of our treebank DTD: parse trees, deep and recursive, with few names and no attributes."""
    return read_dtd(_dtd("treebank"))


@cache
def bibliography_schema() -> Schema:
    """The schema of our bibliography DTD: lists of entries with flat fields."""
    return read_dtd(_dtd("bibliography"))


def schema_from_dtd(path: str | os.PathLike[str], *, root: str | None = None) -> Schema:
    """The schema of a DTD file. The root is `root`, or the element that no other element contains."""
    return read_dtd(Path(path), root=root)
