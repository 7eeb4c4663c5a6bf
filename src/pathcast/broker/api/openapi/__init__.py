"""`GET /openapi.json`: the HTTP surface in OpenAPI 3.1, built from the descriptions beside the endpoints."""

from .descriptions import JSON, NDJSON, Answer, Content, DescriptionError, describes
from .parameters import Choice, Header, Parameter, PathName, Sequence, Text, WholeNumber

__all__ = [
    "JSON",
    "NDJSON",
    "Answer",
    "Choice",
    "Content",
    "DescriptionError",
    "Header",
    "Parameter",
    "PathName",
    "Sequence",
    "Text",
    "WholeNumber",
    "describes",
]
