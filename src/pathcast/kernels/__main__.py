"""`python -m pathcast.kernels`: compile all kernels, or those of some rooms, before anybody waits for them."""

import argparse
import sys
from time import perf_counter

from .ahead_of_time import compile_ahead, kernels_of
from .kernel_cache import cache_folder


def main() -> None:
    """Compile, with a line that counts on a terminal, and a last line elsewhere."""
    parser = argparse.ArgumentParser(prog="python -m pathcast.kernels", description=__doc__.partition(": ")[2])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help="a room such as documents or matching; default: all")
    parser.add_argument("--processes", type=int, metavar="N", help="how many at a time; default: one a processor")
    options = parser.parse_args()
    if options.processes is not None and options.processes < 1:
        parser.error("--processes: at least 1")
    try:
        kernels = kernels_of(options.rooms)
    except ValueError as error:
        parser.error(str(error))
    there = sum(kernel.compiled for kernel in kernels)
    start, done = perf_counter(), there
    for kernel, _ in compile_ahead(kernels, options.processes):
        done += 1
        _show(f"{done}/{len(kernels)} {kernel.module}.{kernel.name}")
    _show("")
    missing = (
        f"{done - there} of them compiled now, in {perf_counter() - start:.0f} s" if done > there else "none missing"
    )
    sys.stdout.write(f"{len(kernels)} kernels in {cache_folder()}, {missing}\n")


def _show(line: str) -> None:
    """Replace the line on the terminal, if there is one."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
