"""Regular expressions for `matches()`, by RE2: the time of a search is linear in the text, whatever the expression.

The package is optional (`pip install "pathcast[regex]"`); it is imported when the first `matches()` is parsed.
"""

import functools
from collections.abc import Callable
from typing import Any

from pathcast.extras import extra

_MOST_BYTES = 1 << 20  # of one compiled expression


@functools.lru_cache(maxsize=4096)
def regular_expression(text: str) -> Callable[[str], bool]:
    """Whether a text contains a match of the expression; `ValueError` with RE2's reason if it is not valid."""
    with extra("regex"):
        import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        compiled: Any = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        raise ValueError(reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    return lambda searched: compiled.search(searched) is not None
