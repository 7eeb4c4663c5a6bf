"""Mediation: subscribers speak one schema, publishers speak many."""

from .mappings.mapping import Mapping
from .mappings.operators import Downgrade, Exchange, Insert, Operator, Rename, ToElement, Upgrade
from .mediated_reader import MediatedReader
from .mediator import Mediator
from .schemas.schema_sources import infer_tree, open_schema
from .schemas.schema_tree import SchemaNode, SchemaTree
from .schemas.similarity_flooding import Pair, correspond

__all__ = [
    "Downgrade",
    "Exchange",
    "Insert",
    "Mapping",
    "MediatedReader",
    "Mediator",
    "Operator",
    "Pair",
    "Rename",
    "SchemaNode",
    "SchemaTree",
    "ToElement",
    "Upgrade",
    "correspond",
    "infer_tree",
    "open_schema",
]
