"""`pathcast renew`: recompile an index from an untrusted source, so that it is safe to open."""

from pathlib import Path
from typing import Annotated

import typer


def renew(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")],
    to: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Folder of the new index. Default: replace INDEX.")
    ] = None,
) -> None:
    """Recompile an index from its subscriptions alone.

    For an index from an untrusted source: opening it trusts its compiled data, which can crash the process.

    This command reads only the subscriptions, as text, checks them and compiles them.

    Exit status 0: the new index is written; 2: the folder holds no readable subscriptions.

    Example: pathcast renew received/ index/
    """
    from pathcast.matching import open_index

    matcher = open_index(index, trusted=False)
    matcher.save(index if to is None else to)
    count = len(matcher.subscriptions)
    typer.echo(f"{count:,} subscription{'s' * (count != 1)}, recompiled for '{matcher.engine_name}': {to or index}")
