"""Content networks: messages to all whose filters match them, and no payload twice over one link."""

from .documents import document_message, pattern_filter
from .faults import Crash, Faults
from .join_space import join_space, result_space
from .network import ContentNetwork
from .payloads import PayloadLimits
from .space import Axis, Reading, Space
from .trace import Delivery, Registration, Trace
from .traffic import Traffic

__all__ = [
    "Axis",
    "ContentNetwork",
    "Crash",
    "Delivery",
    "Faults",
    "PayloadLimits",
    "Reading",
    "Registration",
    "Space",
    "Trace",
    "Traffic",
    "document_message",
    "join_space",
    "pattern_filter",
    "result_space",
]
