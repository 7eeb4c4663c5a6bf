"""How docstrings become Markdown: examples with `>>>` stand in a block of code."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^(?P<indent>[ ]*)>>> .*(?:\n[ ]*\S.*)*", re.MULTILINE)


class Examples(Extension):
    """Marks examples in docstrings as Python."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of anything that has one."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(fenced, obj.docstring.value)


def fenced(example: re.Match[str]) -> str:
    """A doctest as a fenced block, at the margin."""
    lines = [line.removeprefix(example["indent"]) for line in example[0].splitlines()]
    return "\n".join(["```pycon", *lines, "```"])
