"""Documents: XML bytes to element arrays, names, label paths, and schemas."""

from .batch import Document, DocumentBatch
from .limits import Limits
from .names import Names
from .paths import LabelPaths
from .reader import read, read_batch

__all__ = ["Document", "DocumentBatch", "LabelPaths", "Limits", "Names", "read", "read_batch"]
