"""Content networks: messages to all whose filters match them, and no payload twice over one link."""

from .can.filter_space import Axis, Reading, Space
from .can.join_space import join_space, result_space
from .content_network import ContentNetwork
from .delivery_trace import Delivery, Registration, Trace
from .document_messages import document_message, pattern_filter
from .fault_injection import Crash, Faults
from .link_traffic import Traffic
from .payload_cache import PayloadLimits

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
