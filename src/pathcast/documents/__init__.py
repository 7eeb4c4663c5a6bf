"""Documents: XML bytes to element arrays, names, label paths, and schemas."""

from .document_batch import Document, DocumentBatch
from .document_limits import Limits
from .label_paths import LabelPaths
from .names import Names
from .reader import read, read_batch

__all__ = ["Document", "DocumentBatch", "LabelPaths", "Limits", "Names", "read", "read_batch"]
