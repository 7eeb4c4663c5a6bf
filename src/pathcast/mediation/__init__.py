"""Mediation: subscribers speak one schema, publishers speak many."""

from .correspond import Pair, correspond
from .mapping import Mapping
from .mediator import Mediator
from .operators import Downgrade, Exchange, Insert, Operator, Rename, ToElement, Upgrade
from .reading import MediatedReader
from .schema_tree import SchemaNode, SchemaTree
from .sources import infer_tree, open_schema

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
