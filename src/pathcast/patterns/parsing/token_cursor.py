"""The cursor: a position in an expression's tokens, the token there, and errors that point at it.

A token's text determines its kind: only names start with a letter, only literals with a quote, and the end is empty.
A comparison of texts therefore identifies a symbol or a word.
"""

from pathcast.errors import LimitError, PatternError

from .xpath_tokens import SUPPORTED, Token, pattern_error, tokens


class Cursor:
    """Walks the tokens of one expression from left to right."""

    def __init__(self, expression: str, max_nesting: int) -> None:
        self.expression = expression
        self.max_nesting = max_nesting
        self.tokens = tokens(expression)
        self.at = 0
        self.token = self.tokens[0]
        self.nesting = 0

    def next(self) -> Token:
        """Return the current token, which is not the end, and advance to the next."""
        token = self.token
        self.at += 1
        self.token = self.tokens[self.at]
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the current token is one of these symbols or words."""
        return self.token.text in texts

    def before(self, symbol: str) -> bool:
        """Whether `symbol` follows the current token."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)].text == symbol

    def error(self, begin: int, end: int, reason: str, supported: str = SUPPORTED) -> PatternError:
        """An error that points at a part of the expression."""
        return pattern_error(self.expression, begin, end, reason, supported)

    def unexpected(self, wanted: str) -> PatternError:
        """The error that another token was expected here."""
        token = self.token
        if token.kind == "end":
            return self.error(token.at, token.at, f"expected {wanted}, but the expression ends")
        return self.error(token.at, token.stop, f"expected {wanted}, got '{token.text}'")

    def expect(self, symbol: str, wanted: str) -> Token:
        if not self.sees(symbol):
            raise self.unexpected(wanted)
        return self.next()

    def nest(self, token: Token) -> None:
        self.nesting += 1
        if self.nesting > self.max_nesting:
            what = "predicates, parentheses and functions"
            raise LimitError(
                f"{what} are nested more than {self.max_nesting} levels deep; reduce the nesting", column=token.at + 1
            )
