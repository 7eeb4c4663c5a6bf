"""The mediator: one global schema, many publishers, and matchers for the documents of all of them.

Subscriptions use the global schema. A publisher registers its own schema once; from then on its documents are matched
as if they were in the global schema, and the original is delivered. Adding a publisher changes no subscription and no
matcher: a matcher looks mappings up when a document arrives.

Invariant: a name refers to the newest version of its mapping, and older versions stay: a document that names its
version gets that version, or an error that names the newest one. Mappings never change.
"""

import os
import threading
from collections.abc import Iterable
from collections.abc import Mapping as Table
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from pathcast.documents import Entities, Limits, Readable, read
from pathcast.documents.schema import Schema
from pathcast.errors import MappingError

from .correspondence.schema_correspondence import Pair, can_be_moved, correspond
from .correspondence.synonym_dictionary import SynonymDictionary
from .correspondence.twin_documents import Twins
from .mappings.document_object_tree import item_of, to_bytes
from .mappings.document_with_mapping_message import pack
from .mappings.schema_mapping import Mapping, read_tree
from .schemas.schema_integration import Decision, integrate
from .schemas.schema_sources import open_schema
from .schemas.schema_tree import SchemaTree

if TYPE_CHECKING:
    from pathcast.matching import Subscriptions

    from .mediated_matcher import MediatedMatcher

SchemaSource = SchemaTree | Schema | str | os.PathLike[str]
_GLOBAL = "global-schema.txt"
Rewriting = Literal["events", "engine", "static", "queries"]


class Mediator:
    """The global schema, and the mappings of publishers' schemas to it.

    >>> tree = pathcast.mediation.infer_tree
    >>> mediator = pathcast.mediation.Mediator(tree(["<shop><item><name>x</name></item></shop>"]))
    >>> mediator.register("annex", tree(["<shop><item name='x'/></shop>"])).check()
    []
    >>> mediator.rewrite("<shop><item name='lamp'/></shop>", schema="annex")
    b'<shop><item><name>lamp</name></item></shop>'
    """

    def __init__(self, global_schema: SchemaSource) -> None:
        self.global_schema = tree_of(global_schema)
        self.decisions: tuple[Decision, ...] = ()
        """What `integrate` merged, and what it kept apart although something speaks for merging it."""
        self._mappings: dict[str, dict[int, Mapping]] = {}
        self._lock = threading.Lock()

    @classmethod
    def integrate(cls, schemas: "Table[str, SchemaSource] | Iterable[SchemaSource]") -> "Mediator":
        """A mediator whose global schema covers all of these schemas; named ones are registered with their places."""
        named = schemas if isinstance(schemas, Table) else None
        trees = [tree_of(schema) for schema in (schemas if named is None else named.values())]
        found = integrate(trees)
        made = cls(found.tree)
        made.decisions = found.decisions
        for name, tree, places in zip(named or (), trees, found.places, strict=False):
            made.add(Mapping.derive(name, tree, found.tree, places))
        return made

    def register(
        self,
        name: str,
        local_schema: SchemaSource,
        *,
        correspondence: Table[str, str] | None = None,
        twins: Twins | None = None,
        synonyms: SynonymDictionary | None = None,
    ) -> Mapping:
        """Derive the mapping of a publisher's schema and keep it, as the next version under this name.

        Corresponding nodes are found by their values in samples, their names and their places (`propose`); pairs in
        `correspondence` are fixed.
        """
        local = tree_of(local_schema)
        pairs = self.propose(local, correspondence=correspondence, twins=twins, synonyms=synonyms)
        found = {pair.local: pair.glob for pair in pairs if can_be_moved(pair.local, pair.glob)}
        return self.add(Mapping.derive(name, local, self.global_schema, found))

    def propose(
        self,
        local_schema: SchemaSource,
        *,
        correspondence: Table[str, str] | None = None,
        twins: Twins | None = None,
        synonyms: SynonymDictionary | None = None,
    ) -> list[Pair]:
        """The pairs of corresponding nodes that `register` would use, each with its evidence and its confidence.

        `twins`: the numbers of samples of the publisher that say the same as which samples of the global schema.
        """
        return correspond(
            tree_of(local_schema), self.global_schema, known=correspondence, twins=twins, synonyms=synonyms
        )

    def add(self, mapping: Mapping) -> Mapping:
        """Store a mapping as the next version under its name; return it with its version."""
        with self._lock:
            versions = self._mappings.setdefault(mapping.name, {})
            kept = mapping.numbered(max(versions, default=0) + 1)
            versions[kept.version] = kept
        return kept

    def mapping(self, name: str, version: int | None = None) -> Mapping:
        """The mapping of a schema: its newest version, or the given one; `MappingError` when there is none."""
        versions = self._mappings.get(name)
        if not versions:
            known = ", ".join(sorted(self._mappings)[:10]) or "none"
            raise MappingError(
                f"schema '{name}' is not registered (registered schemas: {known}); call register or add first"
            )
        if version is None:
            return versions[max(versions)]
        if version not in versions:
            known = ", ".join(map(str, sorted(versions)[-10:]))
            raise MappingError(
                f"schema '{name}' has no version {version} (known versions: {known}); add a mapping for version "
                f"{version}, or use a known version"
            )
        return versions[version]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the global schema and all versions of all mappings to a folder, one file each; `open` reads them."""
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / _GLOBAL).write_text(f"{self.global_schema}\n", encoding="utf-8")
            for mapping in self.__getstate__()[1]:
                mapping.save(place / f"{quote(mapping.name, safe='')}-{mapping.version}.toml")
        except OSError as error:
            raise MappingError(f"cannot write {place}: {error.strerror}; give another folder") from None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Mediator":
        """The mediator of a folder: its global schema and every mapping there; `MappingError` when there is none."""
        place = Path(folder)
        try:
            tree = read_tree((place / _GLOBAL).read_text(encoding="utf-8"))
        except OSError as error:
            raise MappingError(
                f"cannot read a mediator from {place}: {error.strerror}; create the folder with mediator.save(…)"
            ) from None
        except UnicodeDecodeError:
            raise MappingError(f"the file {place / _GLOBAL} is not UTF-8; save it as UTF-8") from None
        except ValueError:  # a NUL character, or a character that the file system's encoding lacks
            raise MappingError(
                f"cannot read a mediator from {str(place)!r}: the name contains a NUL or an invalid "
                "character; give another folder"
            ) from None
        mappings = sorted(map(Mapping.open, place.glob("*.toml")), key=lambda each: (each.name, each.version))
        made = cls(tree)
        made.__setstate__((tree, mappings))
        return made

    def __getstate__(self) -> tuple[SchemaTree, list[Mapping]]:
        bare = SchemaTree(self.global_schema.root)  # samples are needed where schemas are registered only
        return bare, [each for versions in self._mappings.values() for each in versions.values()]

    def __setstate__(self, state: tuple[SchemaTree, list[Mapping]]) -> None:
        Mediator.__init__(self, state[0])  # a lock cannot be pickled
        for mapping in state[1]:
            self._mappings.setdefault(mapping.name, {})[mapping.version] = mapping

    @property
    def schemas(self) -> list[str]:
        """The names of the registered schemas, in the order of registration."""
        return list(self._mappings)

    def rewrite(self, document: Readable, schema: str, version: int | None = None) -> bytes:
        """A document in the global schema, for people to look at."""
        return to_bytes(self.mapping(schema, version).rewrite(item_of(read(document))))

    def pack(self, document: bytes, schema: str, *, with_mapping: bool = True) -> bytes:
        """A document as a message: with the newest mapping of its schema, or with a reference to it."""
        return pack(document, self.mapping(schema), with_mapping=with_mapping)

    def compile(
        self,
        subscriptions: "Subscriptions",
        rewriting: Rewriting = "events",
        *,
        engine: str | None = None,
        limits: Limits | None = None,
        entities: Entities = "refuse",
    ) -> "MediatedMatcher":
        """A matcher of subscriptions to the global schema for the documents of all publishers."""
        from .mediated_matcher import MediatedMatcher

        return MediatedMatcher(self, subscriptions, rewriting, engine=engine, limits=limits, entities=entities)


def tree_of(schema: SchemaSource) -> SchemaTree:
    """A schema tree from a tree, a schema, or a file (.dtd, .xsd, .xml, a folder of samples)."""
    if isinstance(schema, SchemaTree):
        return schema
    if isinstance(schema, Schema):
        return SchemaTree.unfold(schema)
    return open_schema(schema)
