"""Documents that declare encodings: every name that Python knows, and unknown names.

Each in the forms that readers treat differently: with a DOCTYPE, with namespaces, with long values, with bytes beyond
ASCII, with a byte order mark.
"""

import encodings
import pkgutil
from collections.abc import Iterator
from encodings.aliases import aliases

KNOWN = sorted({*aliases, *aliases.values(), *(module.name for module in pkgutil.iter_modules(encodings.__path__))})
NONSENSE = (
    "x", "klingon", "utf", "utf-9", "utf-88", "iso-8859-99", "..", "a.b", "os", "sys", "string_escape", "__init__",
    "-", "_", "a" * 500, "none", "None", "utf-16-xx", "x-user-defined", "cp0", "aliases", "mbcs", "oem", "utf-32",
    "IDNA", "Punycode", "UTF-7", "unicode_escape", "raw_unicode_escape", "undefined", "zlib", "base64", "rot13",
)  # fmt: skip
NAMES = (*KNOWN, *NONSENSE)
FORMS = (
    '<?xml version="1.0" encoding="{}"?><a/>',
    '<?xml version="1.0" encoding="{}"?><!DOCTYPE a><a xmlns="u"/>',
    "<?xml version='1.0' encoding='{}'?><!DOCTYPE a [<!ATTLIST a xmlns:p CDATA 'u'>]><a><p:b/></a>",
    '<?xml version="1.0" encoding="{}"?><a xmlns="u">\xe9\xff\x81+ADw-b/+AD4-</a>',
    '<?xml version="1.0" encoding="{}"?><a b="' + 20_000 * "v" + '" xmlns="u"/>',
)


def declared() -> Iterator[bytes]:
    """A document for each name and form."""
    for name in NAMES:
        for form in FORMS:
            yield form.format(name).encode("latin-1")
            yield form.format(name.upper().replace("_", "-")).encode("latin-1")
        yield b"\xef\xbb\xbf" + FORMS[1].format(name).encode()
        for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"):
            yield FORMS[1].format(name).encode(codec)
