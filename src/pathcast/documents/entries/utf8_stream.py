"""A file in any supported encoding as UTF-8, piece by piece.

Invariant: the pieces together are what `as_utf8` makes of the whole file, up to the first byte that its encoding does
not have; how the file was cut does not matter.
Cost: nothing for UTF-8; otherwise one decoding and one encoding.
"""

import codecs

from pathcast.errors import DocumentError

from ..character_encodings import UTF_8, encoding_of_head

Piece = bytes | memoryview

# The XML declaration must end within this many bytes.
HEAD = 4_096


class Utf8Stream:
    """Converts the pieces of one file; `encoding`, a codec of Python, overrides what the file declares."""

    def __init__(self, encoding: str | None = None) -> None:
        self._encoding = encoding
        self._head = bytearray()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._taken = 0

    def convert(self, data: Piece, *, final: bool = False) -> tuple[Piece, DocumentError | None]:
        """The next piece, empty while the encoding is not known; and why it is the last, if it could not be read."""
        if self._encoding is None:
            self._head += data
            if len(self._head) < HEAD and not final:
                return b"", None
            try:
                self._encoding = encoding_of_head(bytes(self._head))
            except DocumentError as error:
                return b"", error
            data = bytes(self._head)
            self._head.clear()
        if self._encoding == UTF_8:
            return data, None
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        return self._decoded(self._decoder, bytes(data), final)

    def _decoded(
        self, decoder: codecs.IncrementalDecoder, data: bytes, final: bool
    ) -> tuple[bytes, DocumentError | None]:
        state = decoder.getstate()
        try:
            piece = decoder.decode(data, final)
            self._taken += len(data)
            return piece.encode(), None
        except UnicodeError:
            decoder.setstate(state)
        good: list[str] = []
        for place in range(len(data) + 1):  # byte by byte up to the first that cannot be decoded
            try:
                good.append(decoder.decode(data[place : place + 1], final and place == len(data)))
                good[-1].encode()
            except UnicodeError as error:
                good = good[:-1] if isinstance(error, UnicodeEncodeError) else good
                why = getattr(error, "reason", error)
                reason = f"the bytes up to offset {self._taken + place + 1:,} are not valid in {self._encoding}"
                wrong = DocumentError(f"{reason} ({why}); correct the bytes or the declared encoding")
                return "".join(good).encode(), wrong
        raise AssertionError("bytes that cannot be decoded together can be decoded one by one")
