"""The splitter in plain Python: the entries of a whole file by regular expressions, one token after the other.

Written from the rules in docs/guides/entries.md, for files in UTF-8 and paths of local names.
"""

import re
from typing import NamedTuple

from pathcast.documents import read
from pathcast.errors import PathcastError

_TOKEN = re.compile(
    rb"""(?P<comment><!--(?:(?!--).)*-->)
       | (?P<cdata><!\[CDATA\[.*?\]\]>)
       | (?P<instruction><\?.*?\?>)
       | (?P<end></[^<>]*>)
       | (?P<start><[A-Za-z_:\x80-\xff](?:[^<>"']|"[^<"]*"|'[^<']*')*>)
       | (?P<text>[^<]+)""",
    re.DOTALL | re.VERBOSE,
)
_DOCTYPE = re.compile(
    rb"""<!DOCTYPE\s+[^\s\[>]+(?:\s+(?:SYSTEM|PUBLIC\s+(?:"[^"]*"|'[^']*'))\s+(?:"[^"]*"|'[^']*'))?\s*
         (\[(?:<!--(?:(?!-->).)*-->|<\?(?:(?!\?>).)*\?>|"[^"]*"|'[^']*'|<(?!!--|\?)|[^\]<"'])*\]\s*)?>""",
    re.DOTALL | re.VERBOSE,
)
_NAME = re.compile(rb"</?([^\s/>]*)")


class Part(NamedTuple):
    """An entry by its places. `whole` is False where the file ends with an error, and `begin` None for no entry."""

    begin: int | None
    stop: int
    whole: bool


def split(file: bytes, steps: list[str]) -> list[Part]:
    """The entries by local names; the last part is not whole if the file ends with an error."""
    try:
        return _Split(file, steps).run()
    except _WrongError as wrong:
        return wrong.parts


class _WrongError(Exception):
    def __init__(self, parts: list[Part]) -> None:
        super().__init__()
        self.parts = parts


class _Split:
    def __init__(self, file: bytes, steps: list[str]) -> None:
        self.file, self.steps = file, steps
        self.parts: list[Part] = []
        self.open: list[bytes] = []  # the start tags on the path
        self.child: tuple[int, bytes, bool] | None = None  # where it begins, its name, whether it is an entry
        self.inner = 0  # open elements in the child, with itself
        self.prolog, self.rooted = b"", False

    def wrong(self, at: int) -> _WrongError:
        if self.child is not None and self.child[2]:
            return _WrongError([*self.parts, Part(self.child[0], len(self.file), False)])
        return _WrongError([*self.parts, Part(None, at, False)])

    def run(self) -> list[Part]:
        at = 3 if self.file.startswith(b"\xef\xbb\xbf") else 0
        if re.match(rb"<\?xml\s", self.file[at:]):
            end = self.file.find(b"?>", at)
            if end < 0:
                raise self.wrong(at)
            self.prolog, at = self.file[at : end + 2], end + 2
        typed = False
        while at < len(self.file):
            outside = not self.open and self.child is None
            if outside and not self.rooted and self.file.startswith(b"<!D", at):
                found = _DOCTYPE.match(self.file, at)
                if found is None or typed:
                    raise self.wrong(at)
                self.prolog, typed = self.prolog + found[0], True
            else:
                found = _TOKEN.match(self.file, at)
                if found is None:
                    raise self.wrong(at)
                self.token(found, outside=outside)
            at = found.end()
        if not self.rooted or self.open or self.child is not None:
            raise self.wrong(len(self.file))
        return self.parts

    def token(self, found: re.Match[bytes], *, outside: bool) -> None:
        if outside and (found["cdata"] or (found["text"] or b"").strip(b" \t\r\n")):
            raise self.wrong(found.start())
        if found["start"]:
            if outside and self.rooted:
                raise self.wrong(found.start())
            self.rooted = True
            self.start(found)
        elif found["end"]:
            if outside:
                raise self.wrong(found.start())
            self.end(found)

    def start(self, found: re.Match[bytes]) -> None:
        tag, empty = found[0], found[0].endswith(b"/>")
        if self.child is not None:
            self.inner += not empty
            return
        name, depth = _NAME.match(tag)[1], len(self.open)  # type: ignore[index]
        selected = self.selects(depth, name, tag, found.start())
        if depth == 0 and not selected:
            raise self.wrong(found.start())
        is_entry = selected and depth == len(self.steps) - 1
        if empty:
            if is_entry:
                self.parts.append(Part(found.start(), found.end(), True))
        elif selected and not is_entry:
            self.open.append(tag)
        else:
            self.child, self.inner = (found.start(), name, is_entry), 1

    def selects(self, depth: int, name: bytes, tag: bytes, at: int) -> bool:
        if depth < len(self.steps) - 1 and not (depth and tag.endswith(b"/>")):
            tags = [*self.open, tag[:-2] + b">" if tag.endswith(b"/>") else tag]
            ends = [b"</" + _NAME.match(each)[1] + b">" for each in reversed(tags)]  # type: ignore[index]
            text = re.sub(rb"\A<\?xml\s", b"<?xml ", self.prolog) + b"".join(tags + ends)
            try:
                read(text)
            except PathcastError:
                raise self.wrong(at) from None
        return self.steps[depth] in ("*", name.rpartition(b":")[2].decode("utf-8", "replace"))

    def end(self, found: re.Match[bytes]) -> None:
        name = found[0][2:-1].rstrip(b" \t\r\n")
        if self.child is None:
            if name != _NAME.match(self.open[-1])[1]:  # type: ignore[index]
                raise self.wrong(found.start())
            self.open.pop()
            return
        self.inner -= 1
        if not self.inner:
            begin, expected, is_entry = self.child
            if name != expected:
                raise self.wrong(found.start())
            if is_entry:
                self.parts.append(Part(begin, found.end(), True))
            self.child = None
