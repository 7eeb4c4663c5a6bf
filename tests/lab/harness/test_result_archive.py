from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from pathcast_lab.harness import Experiment, perform, run_experiment
from pathcast_lab.harness import result_archive as archive
from pathcast_lab.harness.result_archive import ArchiveError, load, load_all, store


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_rows_plots_and_record_are_written(drawn_toy: Experiment, tmp_path: Path) -> None:
    result, folder = run_experiment(drawn_toy, output=tmp_path)
    assert folder == tmp_path / "counting" / "small"
    assert names_in(folder) == ["record.json", "rows.csv", "rows.md", "rows.parquet", "time.png", "time.svg"]
    assert parquet.read_table(folder / "rows.parquet").to_pylist() == list(result.rows)
    assert csv.read_csv(folder / "rows.csv").to_pylist() == list(result.rows)
    assert "| size | counter | ms |\n| ---: | --- | ---: |\n| 1 | ours | 0.1 |" in (folder / "rows.md").read_text()
    assert names_in(tmp_path) == ["counting"]


def test_a_result_is_loaded_as_it_was_published(toy: Experiment, tmp_path: Path) -> None:
    result, folder = run_experiment(toy, output=tmp_path, seed=5, changes=["rival=him"])
    loaded = load(folder)
    assert loaded.to_record() == result.to_record()
    assert list(loaded.rows) == list(result.rows)


def test_a_column_that_only_some_rows_have_is_empty_in_the_others(toy: Experiment, tmp_path: Path) -> None:
    result = perform(toy)
    ragged = type(result.rows)([*result.rows, {"size": 7, "memory_mb": 1.5}])
    folder = store(type(result)(**{**vars(result), "rows": ragged}), (), tmp_path)
    assert load(folder).rows[-1] == {"size": 7, "counter": None, "ms": None, "memory_mb": 1.5}


def test_a_run_replaces_its_own_result_and_keeps_the_others(
    toy_with: Callable[..., Experiment], tmp_path: Path
) -> None:
    run_experiment(toy_with(name="first"), output=tmp_path)
    run_experiment(toy_with(name="second"), output=tmp_path, changes=["rival=before"])
    run_experiment(toy_with(name="second"), output=tmp_path, changes=["rival=after"])
    first, second = load_all(tmp_path)
    assert first.rows.distinct("counter") == ["ours", "theirs"]
    assert second.rows.distinct("counter") == ["ours", "after"]
    assert [result.experiment for result in load_all(tmp_path, "second")] == ["second"]


def test_a_small_run_does_not_cost_the_figures_of_the_papers_scale(toy: Experiment, tmp_path: Path) -> None:
    run_experiment(toy, output=tmp_path, scale="paper")
    run_experiment(toy, output=tmp_path, scale="small")
    assert [result.scale for result in load_all(tmp_path)] == ["paper", "small"]


@pytest.mark.parametrize("step", ["draw_svg", "_replace"])
def test_a_fault_while_writing_leaves_former_results_and_no_trace(
    toy: Experiment, drawn_toy: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _, folder = run_experiment(toy, output=tmp_path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(drawn_toy if step == "draw_svg" else toy, output=tmp_path, seed=9)
    assert load(folder).seed == 0
    assert names_in(tmp_path) == ["counting"]
    assert names_in(folder.parent) == ["small"]


def test_a_former_result_comes_back_when_the_new_one_cannot_take_its_place(tmp_path: Path) -> None:
    former = tmp_path / "small"
    former.mkdir()
    (former / "rows.csv").write_text("kept")
    with pytest.raises(FileNotFoundError):
        archive._replace(former, tmp_path / "never-written")
    assert (former / "rows.csv").read_text() == "kept"
    assert names_in(tmp_path) == ["small"]


def test_a_damaged_result_is_named(toy: Experiment, tmp_path: Path) -> None:
    _, damaged = run_experiment(toy, output=tmp_path)
    (damaged / "record.json").write_text("{}")
    with pytest.raises(ArchiveError, match="cannot read the result in .*counting/small"):
        load_all(tmp_path)
