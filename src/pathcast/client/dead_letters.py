"""Dead letters in the broker's protocol: a page of those of a subscription, and the call that makes them due again."""

from typing import Final

from msgspec import Struct, json

from .calls import JSON, Answer, Call, path_of
from .results import DeadLetter, Revived

_PAGE: Final = 1_000


class _Page(Struct):
    dead_letters: list[DeadLetter]
    next: int | None = None


def dead_letters(id: str, after: int) -> Call[tuple[list[DeadLetter], int | None]]:
    """A page of dead letters after a sequence, and where the next begins."""

    def read(answer: Answer) -> tuple[list[DeadLetter], int | None]:
        page = answer.decoded(_Page)
        return page.dead_letters, page.next

    return Call("GET", path_of(id, "/dead-letters"), read, query={"limit": str(_PAGE), "after": str(after)})


def revive(id: str) -> Call[Revived]:
    """Make dead letters due again."""
    content = json.encode({"dead_letters": True})
    return Call("POST", path_of(id, ":replay"), lambda answer: answer.decoded(Revived), content, JSON)
