"""Messages of attributes and values, filters over them, and the bytes of both."""

from .attribute_values import Points, Scalar, Value
from .filters import Between, Box, Covers, Differs, Filter, In, NoPoint, SomePoint, Term, compare
from .intervals import Interval
from .message import Message
from .value_encoding import WireLimits
from .wire_format import decode, decode_filter, encode, encode_filter

__all__ = [
    "Between",
    "Box",
    "Covers",
    "Differs",
    "Filter",
    "In",
    "Interval",
    "Message",
    "NoPoint",
    "Points",
    "Scalar",
    "SomePoint",
    "Term",
    "Value",
    "WireLimits",
    "compare",
    "decode",
    "decode_filter",
    "encode",
    "encode_filter",
]
