"""RoXSum: batches of documents as one structure that is matched, split and sent on. See README.md beside this file."""

from .broker import BatchLimits, Broker, Message, Received, document_targets
from .limits import MessageLimits
from .summary import RoXSum
from .targets import Targets

__all__ = [
    "BatchLimits",
    "Broker",
    "Message",
    "MessageLimits",
    "Received",
    "RoXSum",
    "Targets",
    "document_targets",
]
