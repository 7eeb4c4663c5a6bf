"""Outputs of the notebooks in docs/notebooks: record them, and put them beside the code.

    python scripts/notebook_outputs.py [NAME …]    run notebooks (all by default) and record what they print

A notebook is a Python file without outputs. Its recorded outputs are in docs/notebooks/outputs/NAME.json, a list of
outputs per code cell, so that the site shows them without running anything. A cell with the tag `varies` prints times
or depends on timing; tests compare the outputs of all other cells with the recorded ones.
"""

import json
import sys
from pathlib import Path

import jupytext
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
VARIES = "varies"


def notebook_with_outputs(path: Path) -> NotebookNode:
    """The notebook with its recorded outputs; without a record, with none."""
    notebook: NotebookNode = jupytext.read(path)
    record = recorded_file(path)
    if record.is_file():
        recorded = json.loads(record.read_text(encoding="utf-8"))
        for cell, outputs in zip(code_cells(notebook), recorded, strict=True):
            cell.outputs = outputs
    return notebook


def run(path: Path) -> NotebookNode:
    """The notebook with the outputs of a run."""
    from jupyter_client.manager import KernelManager
    from nbclient import NotebookClient

    notebook: NotebookNode = jupytext.read(path)
    NotebookClient(notebook, timeout=600, km=KernelManager(transport="ipc")).execute()
    return notebook


def outputs_of(notebook: NotebookNode) -> list[list[dict[str, object]]]:
    """The outputs of each code cell as plain text, without counters; texts of one stream are joined."""
    found: list[list[dict[str, object]]] = []
    for cell in code_cells(notebook):
        outputs: list[dict[str, object]] = []
        for output in cell.outputs:
            if output["output_type"] == "stream":
                name, text = output["name"], output["text"]
                if outputs and outputs[-1].get("name") == name:
                    outputs[-1]["text"] = f"{outputs[-1]['text']}{text}"
                else:
                    outputs.append({"output_type": "stream", "name": name, "text": text})
            else:
                data = {"text/plain": output["data"]["text/plain"]}
                outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        found.append(outputs)
    return found


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells with code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def varies(cell: NotebookNode) -> bool:
    """Whether a cell's output may differ from run to run."""
    return VARIES in cell.metadata.get("tags", [])


def recorded_file(path: Path) -> Path:
    """The file with the recorded outputs of a notebook."""
    return path.parent / "outputs" / f"{path.stem}.json"


def main(names: list[str]) -> None:
    """Run notebooks and record their outputs."""
    paths = [NOTEBOOKS / f"{name}.py" for name in names] or sorted(NOTEBOOKS.glob("*.py"))
    for path in paths:
        file = recorded_file(path)
        file.parent.mkdir(exist_ok=True)
        text = json.dumps(outputs_of(run(path)), ensure_ascii=False, indent=1)
        file.write_text(f"{text}\n", encoding="utf-8")
        print(f"{path.name} → {file}")


if __name__ == "__main__":
    main(sys.argv[1:])
