"""Limits where expat reads: each check raises `LimitError` with the line and column at which the parser is."""

from typing import NoReturn
from xml.parsers.expat import XMLParserType

from pathcast.errors import LimitError

from .document_limits import Limits

# Expat keeps a name once per prefix that it is written with: a document may write so many times its limit of names.
_SPELLINGS = 4


class LimitChecks:
    """Checks of one document, of `size` bytes in UTF-8."""

    def __init__(self, limits: Limits, size: int) -> None:
        self._limits, self._size = limits, size

    def attributes(self, parser: XMLParserType, count: int, more: str = "") -> None:
        """Refuse an element with so many attributes, if they are too many."""
        if count > self._limits.attributes:
            self._refuse(parser, "attributes", f"an element has {count:,} attributes{more}")

    def names(self, parser: XMLParserType, count: int) -> None:
        """Refuse a document with so many names and prefixes, if they are too many."""
        most = self._limits.names
        if count > most:
            self._refuse(parser, "names", f"the document has more than {most:,} different names and prefixes")

    def spellings(self, parser: XMLParserType, count: int) -> None:
        """Refuse a document that writes names in so many ways, if they are too many."""
        most = _SPELLINGS * self._limits.names
        if count > most:
            reason = f"the document writes names in more than {most:,} ways, prefixes included"
            line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
            raise LimitError(f"{reason} (raise it with Limits(names=…))", line=line, column=column)

    def growth(self, parser: XMLParserType, allowance: int) -> None:
        """Refuse a document whose entities and defaults have made more than they may, so that less than 0 is left."""
        if allowance < 0:
            what = f"entities or default attributes make the document of {self._size:,} bytes grow too large"
            self._refuse(parser, "amplification", what)

    def _refuse(self, parser: XMLParserType, limit: str, what: str) -> NoReturn:
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        raise self._limits.exceeded(limit, what, line=line, column=column)
