"""Run the chapters again and save them in their one normal form: `python -m course.refresh [FILE ...]`.

The saved outputs are what nbval compares with and what a reader on a code host sees. So a saved chapter holds
outputs, but nothing that differs between two runs or two machines: no widget state and no model ids (the static
picture stands in their place), no timestamps, no tool versions. A cell that measures (tagged nbval-ignore-output) is
not compared: one run's figures stand there as an example, say so, and stay until they are cleared. A cell that shows a
Timeline gets that tag here. `--check` only
reports the files that are not in that form; it runs nothing.
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat

from course import chapters

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MEASURED = "nbval-ignore-output"
EXAMPLE = "(one run, as an example: yours will differ)\n"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Bring the notebook into its normal form, in place, and return it."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
        if cell.cell_type == "code":
            shown = [output for output in cell.outputs if output.get("data", True)]  # not what a check showed meanwhile
            cell.outputs = _joined(_as_example(shown) if _measures(cell) else shown)
            for output in cell.outputs:
                if "data" in output:
                    output.data.pop(WIDGET_VIEW, None)
                    output.metadata = nbformat.from_dict({})
    return notebook


def _measures(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code" and MEASURED in cell.metadata.get("tags", [])


def _as_example(outputs: list) -> list:
    """The outputs below a line that says what they are; a cell that shows nothing needs none."""
    if not outputs or outputs[0].get("text", "").startswith(EXAMPLE):
        return outputs
    return [nbformat.v4.new_output("stream", name="stdout", text=EXAMPLE), *outputs]


def _joined(outputs: list) -> list:
    """The outputs with neighbouring pieces of one stream in one: where a stream is cut is a matter of timing."""
    joined: list = []
    for output in outputs:
        last = joined[-1] if joined else nbformat.from_dict({})
        if output.output_type == "stream" and last.get("output_type") == "stream" and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def execute(notebook: nbformat.NotebookNode) -> None:
    """Run every cell, as a student's Run All would, and keep its outputs in the notebook, examples as they were."""
    from nbclient import NotebookClient  # only here: --check must work in an instant

    examples = [(cell, cell.outputs) for cell in notebook.cells if _measures(cell) and cell.outputs]
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(chapters.FOLDER)}},
    )
    with tempfile.TemporaryDirectory() as nothing_solved:  # what its author has solved would run in the chapter
        client.execute(env=os.environ | {"JUPYTER_DATA_DIR": nothing_solved})
    for cell, outputs in examples:
        cell.outputs = outputs
    for cell in notebook.cells:
        if any(output.get("metadata", {}).get("measured") for output in cell.get("outputs", ())):
            cell.metadata["tags"] = sorted({*cell.metadata.get("tags", ()), MEASURED})  # a Timeline


def as_text(notebook: nbformat.NotebookNode) -> str:
    """Return the exact text of the saved file."""
    return nbformat.writes(notebook) + "\n"


def main(arguments: list[str]) -> int:
    """Refresh or check the chapters named, or all of them; return the number of files not in normal form."""
    only_check = "--check" in arguments
    paths = [Path(name) for name in arguments if name != "--check"] or chapters.notebooks()
    wrong = 0
    for path in paths:
        print(f"{path.name} ...", flush=True)
        notebook = nbformat.read(path, as_version=4)
        if not only_check:
            execute(notebook)
            path.write_text(as_text(normalise(notebook)), encoding="utf-8")
        elif as_text(normalise(notebook)) != path.read_text(encoding="utf-8"):
            print(f"{path.name} is not in normal form: run `make refresh`")
            wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
