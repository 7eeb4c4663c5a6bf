"""Extras: packages that only some parts of Pathcast need, and the error that names the missing one.

    with extra("joins"):
        import sqlglot

`pip install pathcast` brings what matching needs. Each other part has an extra of its own in `pyproject.toml`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import PathcastError


class MissingExtraError(PathcastError, ImportError):
    """A package is missing that an extra of Pathcast would install."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports of packages of this extra: where one is missing, the error says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if isinstance(error, PathcastError) or package in {"", "pathcast"}:
            raise
        raise MissingExtraError(f'{package} is not installed; run: pip install "pathcast[{name}]"') from error
