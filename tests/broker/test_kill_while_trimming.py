"""A broker that is killed while it trims: what it may not trim is there, and what was acknowledged stays so."""

import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from .broker_world import TENANT, broker_in, delivered


@pytest.mark.slow
def test_a_broker_that_is_killed_while_it_trims_loses_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    draw = random.Random(1)
    printed: dict[str, list[int]] = defaultdict(list)
    for _ in range(50 if request.config.getoption("--long") else 4):
        command = [sys.executable, "-m", "tests.broker.trimming_process", str(tmp_path / "log")]
        root = Path(__file__).parents[2]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
            assert process.stdout is not None
            left, lines = draw.randrange(5, 60), list[str]()
            for line in process.stdout:
                lines.append(line)
                left -= line.startswith("trims ")
                if not left:  # a trim begins now
                    break
            # The moment differs from run to run: during the checkpoint, between two files, or just after.
            time.sleep(draw.uniform(0, 0.02))
            process.kill()
            lines += process.stdout.read().splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):  # the last line may be cut
                word, number = line.split()
                printed[word].append(int(number))
        with broker_in(tmp_path / "log") as broker:
            first = broker.log.first
            assert first <= max(printed["trims"])
            found = delivered(broker, "all", after=first - 1)
            assert {each for each in printed["accepted"] if each >= first} <= set(found)
            assert found == sorted(set(found))
            again = [each.entry.sequence for each in broker.pull(TENANT, "acknowledged", 1_000).deliveries]
            assert not set(again) & set(printed["acknowledged"])
    assert max(printed["trimmed"]) > 20
    assert first > 1
