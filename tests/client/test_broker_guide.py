"""The guide to the broker: its examples give what they show, in their order, on a new broker."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.broker.served_broker import served
from tests.test_readme import PROJECT, blocks, run_python

GUIDE = PROJECT / "docs" / "guides" / "broker.md"


@pytest.mark.slow
def test_examples_of_the_guide_give_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()"
    command = tmp_path / "pathcast"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n')
    command.chmod(0o755)
    paths = [str(PROJECT / "src"), os.environ.get("PYTHONPATH", "")]
    settings = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with served(tmp_path / "data") as broker:
        found = [
            replace(block, text=block.text.replace("http://127.0.0.1:8080", broker.address)) for block in blocks(GUIDE)
        ]
        assert {block.language for block in found} == {"text", "sh", "python"}
        for block in found:
            if block.language == "python":
                assert run_python(block, names) == (block.shown or ""), f"line {block.line}"
            elif block.language == "sh":
                done = subprocess.run(
                    ["sh", "-eu"], input=block.text, env={**os.environ, **settings}, capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                assert done.returncode == 0, f"line {block.line}: {done.stderr}"
                assert done.stdout.rstrip("\n") == (block.shown or "").rstrip("\n"), f"line {block.line}"
