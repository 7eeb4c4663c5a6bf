"""Limits where expat reads: each check raises `LimitError` with the line and column at which the parser is."""

from typing import NoReturn
from xml.parsers.expat import XMLParserType

from pathcast.errors import LimitError

from .document_limits import AMPLIFICATION_FLOOR, Limits

# Expat stores a name once per prefix that it is written with: a document may write this multiple of its limit of names.
_SPELLINGS = 4


class LimitChecks:
    """Checks of one document, of `size` bytes in UTF-8."""

    def __init__(self, limits: Limits, size: int) -> None:
        self._limits, self._size = limits, size

    def attributes(self, parser: XMLParserType, count: int, more: str = "") -> None:
        """Reject an element with more attributes than allowed."""
        if count > self._limits.attributes:
            self._refuse(parser, "attributes", f"an element has {count:,} attributes{more}")

    def names(self, parser: XMLParserType, count: int) -> None:
        """Reject a document with more names and prefixes than allowed."""
        most = self._limits.names
        if count > most:
            self._refuse(parser, "names", f"the document has more than {most:,} different names and prefixes")

    def spellings(self, parser: XMLParserType, count: int) -> None:
        """Reject a document with more spellings of names than allowed."""
        most = _SPELLINGS * self._limits.names
        if count > most:
            self._raise(parser, f"the document has more than {most:,} different pairs of prefix and name", "names")

    def growth(self, parser: XMLParserType, allowance: int) -> None:
        """Reject a document whose entities and default attributes expand beyond their allowance, so that less
        than 0 is left.
        """
        if allowance < 0:
            most = max(AMPLIFICATION_FLOOR, self._limits.amplification * self._size)
            what = (
                f"entities or default attributes expand the document of {self._size:,} bytes to more than "
                f"{most:,} bytes"
            )
            self._raise(parser, what, "amplification")

    def _refuse(self, parser: XMLParserType, limit: str, what: str) -> NoReturn:
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        raise self._limits.exceeded(limit, what, line=line, column=column)

    @staticmethod
    def _raise(parser: XMLParserType, what: str, limit: str) -> NoReturn:
        """Raise the error for a bound that is a multiple of a limit; `what` states the bound."""
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        raise LimitError(f"{what} (raise the limit with Limits({limit}=…))", line=line, column=column)
