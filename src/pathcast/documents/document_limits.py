"""Limits: bounds on the size and complexity of an untrusted document.

Each limit bounds memory or time that a sender could otherwise make a receiver spend. A document beyond a limit is
rejected with a `LimitError` that names the limit and how to raise it.
"""

from dataclasses import dataclass, fields

from pathcast.errors import LimitError, SizeLimitError
from pathcast.toml_files import NUMBER, key


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one document.

    depth: of nested elements. size: bytes, of the document and of its UTF-8 form. attributes: per element. names:
    different names of elements and attributes, and different prefixes of namespaces; schemas have hundreds of them, the
    largest in use (financial reports in XBRL) some 20,000. name_length: characters per name, and per namespace, which
    may always have 16,384. amplification: bytes of text that `entities="expand"` may produce per byte of the document.
    work: look-ups in the subscriptions' paths that matching a document may take when it has too many label paths to
    cache. evaluation: steps that evaluating one subscription on the document may take, where a subscription is more
    than a tree pattern: nodes visited, and 64 characters read are one.

    >>> pathcast.documents.read("<a><b/></a>", limits=pathcast.Limits(depth=1))
    Traceback (most recent call last):
    pathcast.errors.LimitError: line 1, column 4: an element is nested 2 deep; the limit is 1 ...
    """

    depth: int = key(NUMBER, "Depth of nested elements.", 1_000)
    size: int = key(NUMBER, "Bytes per document.", 128 << 20)
    attributes: int = key(NUMBER, "Attributes per element.", 4_096)
    names: int = key(NUMBER, "Different names of elements and attributes, and prefixes.", 65_536)
    name_length: int = key(NUMBER, "Characters per name, and per namespace if more than 16,384.", 4_096)
    amplification: int = key(NUMBER, "Bytes of text that entities may produce per byte of the document.", 20)
    work: int = key(NUMBER, "Look-ups in the subscriptions' paths, once there are too many to cache.", 1 << 27)
    evaluation: int = key(NUMBER, "Steps that evaluating one subscription may take on the document.", 1 << 22)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LimitError(f"Limits({field.name}=…) must be an int of at least 1, got {value!r}")

    @classmethod
    def given(cls, limits: "Limits | None") -> "Limits":
        """The given limits, the default ones for None; `TypeError` for anything else."""
        if limits is not None and not isinstance(limits, cls):
            raise TypeError(f"limits must be Limits(…) or None, got {limits!r}")
        return cls() if limits is None else limits

    def exceeded(self, limit: str, what: str, *, line: int | None = None, column: int | None = None) -> LimitError:
        """The error for `what` beyond `limit`."""
        allowed = getattr(self, limit)
        reason = f"{what}; the limit is {allowed:,} (raise the limit with Limits({limit}=…))"
        kind = SizeLimitError if limit == "size" else LimitError
        return kind(reason, line=line, column=column)


# Text below this size is never an attack: the amplification limit applies only to larger expansions.
AMPLIFICATION_FLOOR = 1 << 20
