"""Mediation: subscribers speak one schema, publishers speak many."""

from .operators import Downgrade, Exchange, Insert, Operator, Rename, ToElement, Upgrade
from .schema_tree import SchemaNode, SchemaTree

__all__ = ["Downgrade", "Exchange", "Insert", "Operator", "Rename", "SchemaNode", "SchemaTree", "ToElement", "Upgrade"]
