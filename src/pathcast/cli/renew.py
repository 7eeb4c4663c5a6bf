"""`pathcast renew`: an index from elsewhere becomes one that can be opened without a thought."""

from pathlib import Path
from typing import Annotated

import typer


def renew(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")],
    to: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where the new one goes; default: in the old one's place.")
    ] = None,
) -> None:
    """Compile an index anew, from its subscriptions alone.

    For an index that comes from elsewhere: opening one believes what was compiled, and a forged one can end a process.

    Nothing of that is believed here: subscriptions are read as text, checked, and compiled.

    Exit status 0: the new index is written; 2: what is there holds no subscriptions that could be read.

    Example: pathcast renew received/ index/
    """
    from pathcast.matching import open_index

    matcher = open_index(index, trusted=False)
    matcher.save(index if to is None else to)
    count = len(matcher.subscriptions)
    typer.echo(f"{count:,} subscription{'s' * (count != 1)}, compiled anew for '{matcher.engine_name}': {to or index}")
