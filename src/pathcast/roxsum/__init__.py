"""RoXSum: batches of documents as one structure that is matched, split and sent on. See README.md beside this file."""

from .limits import MessageLimits
from .summary import RoXSum
from .targets import Targets

__all__ = ["MessageLimits", "RoXSum", "Targets"]
