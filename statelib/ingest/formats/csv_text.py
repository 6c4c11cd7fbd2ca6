"""The text of a CSV file as its parser takes it: in UTF-8 whatever the file's encoding, behind the line of names.

Arrow's parser ends at bytes that are no text, wherever it has to show them. So these are marked: a byte that does not
belong to the encoding stands in the text as the character ``U+10FF00 + byte``, of which Unicode says that it means
nothing, and becomes itself again when the row is read (`unmarked`). Where a file has such a character, its bytes are
marked too.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from statelib.ingest.sources.files import SourceFile

_DELIMITERS = (",", "\t", ";", "|")
_BEGINNING_BYTES = 1 << 20
_MOST_LINE_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
_BYTE_ORDER_MARK = "\ufeff"
_FIRST_MARK = 0x10FF00
_FIRST_ODD = 0xDC00
_ODD = re.compile("[\udc00-\udcff]")
_MARKS = re.compile("[\U0010ff00-\U0010ffff]")
_MARK_IN_UTF8 = re.compile(rb"\xf4\x8f[\xbc-\xbf][\x80-\xbf]")


def _odd_bytes(error: UnicodeError) -> tuple[str, int]:
    """Takes bytes that are no text for characters that no text has."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - only readers use it
    return "".join(chr(_FIRST_ODD + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error("hindstream.odd", _odd_bytes)


def _marked(text: str) -> str:
    own = _MARKS.sub(lambda found: "".join(chr(_FIRST_MARK + byte) for byte in found[0].encode()), text)
    return _ODD.sub(lambda found: chr(ord(found[0]) - _FIRST_ODD + _FIRST_MARK), own)


def unmarked(text: bytes) -> bytes:
    """The bytes of a file, of text that may have marks."""
    return _MARK_IN_UTF8.sub(lambda found: bytes([ord(found[0].decode()) - _FIRST_MARK]), text)


class CsvText(io.RawIOBase):
    """The rows of a file as text in UTF-8, for Arrow's parser.

    Args:
        opened: The file, decompressed.
        encoding: Of its text.
        has_header: Whether the first line has the names of the columns.

    Attributes:
        first_line: The first one that is not empty; with marks.
        header: It, if it has the names; else empty.
        has_marks: Whether what has been read has bytes that are no text.
    """

    def __init__(self, opened: pa.NativeFile, encoding: str, *, has_header: bool = True) -> None:
        self._opened = opened
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="hindstream.odd")
        self._is_utf8 = codecs.lookup(encoding).name == "utf-8"
        self._ahead = b""
        self._before, self._last = b"", b""
        self._ended = False
        self._final = b""
        self.has_marks = False
        self.first_line = self._take_line()
        self.header = self.first_line if has_header else ""
        if not has_header:
            self._ahead = self.first_line.encode() + b"\n" + self._ahead if self.first_line else self._ahead

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """What comes next: as much as is asked for, or all that is left. Arrow takes it for a block."""
        wanted = _BLOCK_BYTES if size is None or size < 0 else size
        parts, length = [self._ahead], len(self._ahead)
        while length < wanted and not self._ended:
            parts.append(self._next(wanted - length))
            length += len(parts[-1])
        text = b"".join(parts)
        found, self._ahead = text[:wanted], text[wanted:]
        if found:
            self._before, self._last = self._last, found
        return found

    def beginning(self) -> tuple[bytes, bool]:
        """The first rows, whole ones but for the last where it has no end, and whether they are all."""
        while len(self._ahead) < _BEGINNING_BYTES and not self._ended:
            self._ahead += self._next(_BEGINNING_BYTES)
        found = self._ahead[:_BEGINNING_BYTES]
        if self._ended and len(found) == len(self._ahead):
            return found, True
        end = max(found.rfind(b"\n"), found.rfind(b"\r")) + 1
        return found[:end], False

    def ends_within(self, value: bytes, delimiter: str) -> bool:
        """Whether the text, which has been read, ends within quotes: ``value`` is the last one of the last row."""
        open_ = b'"' + value.replace(b'"', b'""')
        text = self._before + self._last
        before = (delimiter.encode(), b"\n", b"\r")
        return bool(value) and (text == open_ or text.endswith(tuple(one + open_ for one in before)))

    def _next(self, size: int) -> bytes:
        data = bytes(self._opened.read(size))
        self._ended = not data
        if data and self._is_utf8 and not self._decoder.getstate()[0] and _is_plain(data):
            self._final = data[-1:]
            return data
        text = _marked(self._decoder.decode(data, final=self._ended))
        self.has_marks = self.has_marks or _MARKS.search(text) is not None
        found = text.encode()
        self._final = found[-1:] or self._final
        if self._ended and self._final not in b"\r\n":  # else Arrow takes an empty value at the end for one in quotes
            found += b"\n"
        return found

    def _take_line(self) -> str:
        """Empty lines before it are passed over."""
        text = b""
        while True:
            more = b"" if self._ended else self._next(_BEGINNING_BYTES)
            text += more
            whole = text.decode().removeprefix(_BYTE_ORDER_MARK).lstrip("\r\n")
            line = _first_line(whole)
            if len(line) < len(whole) or self._ended or len(text) > _MOST_LINE_BYTES:
                self._ahead = whole[len(line) :].removeprefix("\r").removeprefix("\n").encode()
                return line


def _is_plain(data: bytes) -> bool:
    """Whether it is UTF-8 with nothing that would be taken for a mark."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _MARK_IN_UTF8.search(data) is None


def _first_line(text: str) -> str:
    """Up to the first end of a line that is not within quotes."""
    quoted = False
    for found in re.finditer('["\r\n]', text):
        if found[0] == '"':
            quoted = not quoted
        elif not quoted:
            return text[: found.start()]
    return text


def delimiter_of(header: str, given: str | None) -> str:
    """What stands between values: what is given, or what the line of names has most of, outside of quotes.

    Raises:
        ConfigurationError: It is not one character.
    """
    if given is not None:
        if len(given.encode()) == 1 and given not in '"\r\n':
            return given
        step = "name one such as ',' or ';'; for a tab the shell has $'\\t'"
        what = "values of CSV are separated by one character of ASCII, which is no quote"
        raise ConfigurationError(what, setting="delimiter", given=repr(given), next_step=step)
    bare = re.sub('"[^"]*"', "", header)
    return max(_DELIMITERS, key=bare.count)


def names_of(header: str, delimiter: str, encoding: str, file: SourceFile) -> list[str]:
    """The names of the columns; one without a name is called by its number, one that comes twice gets it behind.

    Raises:
        InputError: There are none, or they are no text.
    """
    if not header.strip():
        step = "name the columns in the first line"
        raise InputError("a CSV file has no names of columns", file=file.path, next_step=step)
    if _MARKS.search(header):
        step = "name the encoding that the file has: --encoding latin-1, cp1252 or utf-16"
        raise InputError(f"the names of the columns are no text in {encoding}", file=file.path, next_step=step)
    given = [name.strip() for name in next(csv.reader(io.StringIO(header), delimiter=delimiter))]
    names: list[str] = []
    for n, found in enumerate(given, 1):
        name = found or f"column_{n}"
        while name in names or (name != found and name in given):
            name = f"{name}_{n}"
        names.append(name)
    return names
