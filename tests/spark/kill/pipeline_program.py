"""The pipeline that is killed: `pathcast run` of a file with joins whose subscribers come and go.

Started as a separate program, with the folder of the scene as its argument. Continues from its checkpoint until a
file `stop` appears; then it processes all existing input and ends.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pathcast.cli.app import main


def watch(folder: Path) -> None:
    """Signal when the stream of joins has begun, and stop it on request."""
    while not (folder / "checkpoint" / "joins" / "metadata").exists():
        time.sleep(0.05)
    (folder / "streaming").touch()
    while not (folder / "stop").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    here = Path(sys.argv[1])
    ending = (here / "stop").exists()
    if not ending:
        threading.Thread(target=watch, args=(here,), daemon=True).start()
    sys.argv[1:] = ["run", str(here / ("ending.toml" if ending else "endless.toml"))]
    main()
