"""RoXSum: batches of documents as one structure that is matched, split and forwarded. See README.md in this folder."""

from pathcast.extras import extra

with extra("roxsum"):
    import pyroaring  # noqa: F401 - the first file that needs it comes below
    import zstandard  # noqa: F401

from .batch_routing_broker import BatchLimits, Broker, Message, Received, document_targets
from .broker_routing_table import Targets
from .message.message_limits import MessageLimits
from .summary import RoXSum

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
