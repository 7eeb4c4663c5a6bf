"""Random documents and random patterns over the whole fragment, for tests against the oracle."""

from tests.generators.documents import NAMESPACES, Document, random_document, varied
from tests.generators.expressions import Path, expression
from tests.generators.patterns import random_pattern
from tests.generators.shrinking import shrunk

__all__ = ["NAMESPACES", "Document", "Path", "expression", "random_document", "random_pattern", "shrunk", "varied"]
