"""The name of an undeclared prefix: expat reports only that there is one, and where.

The document is read again, up to that place, by a parser that treats declarations like other attributes.
"""

from collections import Counter
from collections.abc import Iterator
from xml.parsers import expat

# Longer names are truncated in messages.
_SHOWN = 100


class _UnboundError(Exception):
    """Ends the parser at the first prefix without a declaration."""


def unbound_prefix(data: bytes) -> str:
    """A sentence about the first undeclared prefix of a document in UTF-8; empty where there is none."""
    declared = Counter(["xml"])
    scopes: list[list[str]] = []

    def start(tag: str, attributes: list[str]) -> None:
        scopes.append([name[6:] for name in attributes[::2] if name.startswith("xmlns:")])
        declared.update(scopes[-1])
        for name, prefix in _prefixed(tag, attributes):
            if not declared[prefix]:
                user = f"<{name[:_SHOWN]}>" if name is tag else f"the attribute {name[:_SHOWN]}"
                short = prefix[:_SHOWN]
                raise _UnboundError(f"{user} uses the undeclared prefix '{short}:'; declare it with xmlns:{short}='…'")

    def end(_: str) -> None:
        declared.subtract(scopes.pop())

    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(data, True)
    except _UnboundError as found:
        return str(found)
    except expat.ExpatError:
        pass  # reported by the namespace-aware parser
    return ""


def _prefixed(tag: str, attributes: list[str]) -> Iterator[tuple[str, str]]:
    """The names of an element and its attributes that have a prefix, and their prefixes."""
    for name in (tag, *attributes[::2]):
        prefix, colon, _ = name.partition(":")
        if colon and prefix != "xmlns":
            yield name, prefix
