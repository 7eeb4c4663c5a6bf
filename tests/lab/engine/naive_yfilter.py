"""A stand-in for YFilter's main program, run in place of `java`: the same arguments, the same files, lxml's answers.

The folder of classes may hold a file `fault`, whose text makes it go wrong in one way.
"""

import sys
from pathlib import Path

from lxml import etree


def main(option: str, classes: str, program: str, folder: str, queries: str, *_: str) -> None:
    assert (option, program) == ("-cp", "edu.berkeley.cs.db.yfilter.filter.EXfilter")
    fault = (Path(classes) / "fault").read_text() if (Path(classes) / "fault").exists() else ""
    if fault == "fails":
        sys.exit("java.lang.OutOfMemoryError")
    paths = [etree.XPath(f"boolean({line})") for line in Path(queries).read_text().splitlines()]
    files = sorted(Path(folder).glob("*.xml"))
    lines = []
    for file in files:
        tree = etree.parse(file)
        found = [number for number, path in enumerate(paths, 1) if path(tree)]
        if fault == "misses":
            found = found[1:]
        lines.append(f"{folder}/{file.name}: " + "".join(f"{number} " for number in found))
    if fault == "varies":
        lines[0] += "99 "
    if fault == "skips":
        del lines[0]
    if fault != "silent":
        results = ["", "basic", *lines, "", "No. of results:", "\t3" * len(files), "", "Avg number of results:\t3.0"]
        Path("result.txt").write_text("\n".join(results))
    # The first pass takes longer, as with Java.
    first = len(files) // 2
    parsing, filtering = ("".join(f"\t{ms}" for ms in [9] * first + [own] * (len(files) - first)) for own in (1, 4))
    costs = ["CPU TIME", "algorithms\tdocs...\tavg", "alg 0:", "-- parsing cost --", parsing, "Avg:\t1"]
    if fault == "untimed":
        filtering = filtering[2:]
    Path("performance.txt").write_text("\n".join([*costs, "-- filtering cost --", filtering, "Avg:\t4", ""]))


main(*sys.argv[1:])
