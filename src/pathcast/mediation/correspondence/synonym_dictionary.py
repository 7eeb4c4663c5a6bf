"""Synonyms of words in names: groups of words that mean the same, and abbreviations; users can add their own.

A dictionary is a text with a group per line:

    supplier seller vendor          words that mean the same
    quantity = qty qnty             abbreviations of the first word
    issue ~ date created            words that come close, but do not mean the same

Invariant: words are in lower case and in the singular, as `words_of` gives them.
"""

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pathcast.errors import MappingError

_SAME, _SHORT, _CLOSE = 0.95, 0.975, 0.75
_KNOWN = Path(__file__).with_name("synonyms.txt")


class SynonymDictionary:
    """Groups of words that mean the same."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._groups: dict[str, dict[int, float]] = {}
        self._count = 0
        for number, line in enumerate(lines, 1):
            self._add(line.partition("#")[0].lower().split(), number)

    def _add(self, words: list[str], number: int) -> None:
        if not words:
            return
        sign = next((word for word in words if word in ("=", "~")), None)
        found = [word for word in words if word != sign]
        if len(found) < 2 or (sign is not None and words.index(sign) != 1):
            raise MappingError(
                f"line {number} of the synonyms is malformed: '{' '.join(words)}'; write at least two words, or "
                "'word = abbreviation …', or 'word ~ similar …'"
            )
        weight = {"=": _SHORT, "~": _CLOSE}.get(sign or "", _SAME) ** 0.5
        self._count += 1
        for word in found:
            self._groups.setdefault(word, {})[self._count] = weight

    def groups(self, word: str) -> dict[int, float]:
        """The groups of a word, each with how well the word stands for it."""
        return self._groups.get(word, {})

    @classmethod
    def open(cls, *files: str | os.PathLike[str]) -> "SynonymDictionary":
        """The dictionary that Pathcast brings, with the groups of these files added."""
        if not files:
            return _known()
        lines = _KNOWN.read_text(encoding="utf-8").splitlines()
        made = cls(lines)
        for file in files:
            try:
                text = Path(file).read_text(encoding="utf-8-sig")
            except OSError as error:
                raise MappingError(f"cannot read {os.fspath(file)}: {error.strerror}; check the path") from None
            except UnicodeDecodeError:
                raise MappingError(f"the file {os.fspath(file)} is not UTF-8; save it as UTF-8") from None
            for number, line in enumerate(text.splitlines(), 1):
                made._add(line.partition("#")[0].lower().split(), number)
        return made


@cache
def _known() -> SynonymDictionary:
    return SynonymDictionary(_KNOWN.read_text(encoding="utf-8").splitlines())
