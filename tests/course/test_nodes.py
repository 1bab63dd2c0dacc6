"""What chapter 18's cells start runs in an empty folder of its own, and finds the torchrun of this Python."""

import os
import shutil
import sys
from pathlib import Path

from course import nodes


def test_cells_run_in_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(nodes, "_folders", [])
    nodes.scratch()
    assert Path.cwd() != tmp_path and not os.listdir()
    assert Path(shutil.which("torchrun", path=os.environ["PATH"])).parent == Path(sys.executable).parent
    os.chdir(tmp_path)
    nodes._folders.pop().cleanup()
