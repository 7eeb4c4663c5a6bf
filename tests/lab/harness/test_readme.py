import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import pathcast_lab.harness as room
from pathcast_lab.harness import experiment_registry as registry
from pathcast_lab.harness import find, perform


def test_the_example_of_the_readme_is_an_experiment_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    find(["*"])
    monkeypatch.setattr(registry, "_registry", {})
    text = (Path(room.__file__).parents[3] / "README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    def build(size: int, seed: int) -> tuple[SimpleNamespace, SimpleNamespace]:
        return SimpleNamespace(match=lambda: size), SimpleNamespace(match=lambda: size)

    names = {name: getattr(room, name) for name in room.__all__}
    preamble = "from collections.abc import Iterator\nfrom dataclasses import dataclass\n"
    exec(preamble + example, {**names, "build": build, "__name__": "readme"})  # noqa: S102
    [engines] = find(["engines"])
    result = perform(engines, changes=["sizes=5", "rounds=1"])
    assert [(row["size"], row["engine"]) for row in result.rows] == [(5, "ours"), (5, "theirs")]
    assert result.claims[0].measured.endswith(" times at 5")
