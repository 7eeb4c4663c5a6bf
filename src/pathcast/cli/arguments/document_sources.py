"""Sources of documents: files as they are, or with `--split` each as a stream of its entries."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, NamedTuple

import typer

from .shared_arguments import Entities, namespaces_of

if TYPE_CHECKING:
    from pathcast.documents import EntryPath, Limits
    from pathcast.errors import PathcastError

SplitOption = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="PATH",
        help="Make a document of each entry of a file: the elements that this path selects, such as /feed/entry. "
        "Prefixes are those of --namespaces; Q{uri}entry needs none.",
    ),
]


class Source(NamedTuple):
    """A document: the name that the user gave, and a file, its content, or why there is none."""

    name: str
    document: "Path | bytes | IO[bytes] | PathcastError"


def entries(
    sources: Iterable[Source], path: "EntryPath | None", limits: "Limits", entities: "Entities"
) -> Iterator[Source]:
    """The entries of the files, named `FILE#NUMBER`; the files themselves without a path."""
    from pathcast.documents import entries_of

    for source in sources:
        if path is None or isinstance(source.document, Exception):
            yield source
            continue
        for entry in entries_of(source.document, path, limits=limits, entities=entities.value):
            yield Source(f"{source.name}#{entry.number}", entry.document if entry.error is None else entry.error)


def path_of_entries(split: str | None, namespaces: Iterable[str]) -> "EntryPath | None":
    """The path that `--split` gives, if any; a wrong one ends the command."""
    from pathcast.documents import parse_entry_path

    return None if split is None else parse_entry_path(split, namespaces_of(namespaces))
