"""`python -m pathcast.kernels`: compile all kernels, or the kernels of some packages, before they are needed."""

import argparse
import sys
from time import perf_counter

from .compilation.ahead_of_time import compile_ahead, kernels_of
from .compilation.kernel_cache import cache_folder


def main() -> None:
    """Compile; show progress if stderr is a terminal, and print a summary at the end."""
    parser = argparse.ArgumentParser(prog="python -m pathcast.kernels", description=__doc__.partition(": ")[2])
    parser.add_argument("rooms", nargs="*", metavar="PACKAGE", help="such as documents or matching; default: all")
    parser.add_argument("--processes", type=int, metavar="N", help="compile in N processes; default: one per processor")
    options = parser.parse_args()
    if options.processes is not None and options.processes < 1:
        parser.error(f"--processes must be at least 1, got {options.processes}")
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
    missing = f"{done - there} of them compiled in {perf_counter() - start:.0f} s" if done > there else "none missing"
    sys.stdout.write(f"{len(kernels)} kernels in {cache_folder()}, {missing}\n")


def _show(line: str) -> None:
    """Replace the current line if stderr is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
