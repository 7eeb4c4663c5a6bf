"""Extras: optional packages that only some parts of Pathcast need, and the error for a missing one.

    with extra("joins"):
        import sqlglot

`pip install pathcast` installs the packages that matching needs. Every other part has an extra in `pyproject.toml`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import PathcastError


class MissingExtraError(PathcastError, ImportError):
    """A package is missing that an extra of Pathcast would install."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Wrap imports of the packages of this extra: if one is missing, the error names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if isinstance(error, PathcastError) or package in {"", "pathcast"}:
            raise
        raise MissingExtraError(f'{package} is not installed; run: pip install "pathcast[{name}]"') from error
