"""A process that opens an index and matches a document does nothing that only other processes need."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pathcast

DOCUMENT = "<a><b c='1'>x</b></a>"

# Regular expressions with the characters of names are known by the last of these characters.
MATCH = f"""
import json, re, sys
compiled, compile_one = [], re.compile
def recorded(expression, flags=0):
    compiled.append(expression)
    return compile_one(expression, flags)
re.compile = recorded
import pathcast
matcher = pathcast.open_index(sys.argv[1])
found = matcher.match({DOCUMENT!r}).ids.tolist()
opened = [each for each in compiled if "\\U000effff" in str(each)]
pathcast.Subscriptions().add("/a[b = 1]//c")
parsed = [each for each in compiled if "\\U000effff" in str(each)]
print(json.dumps({{"ids": found, "opened": len(opened), "parsed": len(parsed)}}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("index")
    subscriptions = pathcast.Subscriptions()
    for expression in ("//b", "/a[b]/b", "//b[@c = 1]", "//b[. = 'x' or @d]"):
        subscriptions.add(expression)
    subscriptions.compile().save(folder)
    program = [sys.executable, "-c", MATCH, str(folder)]
    return json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_expressions_for_names_are_compiled_only_by_a_process_that_parses(found: Any) -> None:
    assert found["ids"] == [1, 2, 3, 4]
    assert found["opened"] == 0
    assert found["parsed"] > 0
