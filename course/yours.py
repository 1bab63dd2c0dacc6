"""The student's own solutions, for the cells that come after them: `from course.yours import ring_all_reduce`.

What passed its check last is what runs, in every later cell and chapter; its text is kept beside the progress
(course/memory.py). As long as there is none it is our solution, which one line says. Ranks import this module, so it
loads nothing that they do not need.

Left out: ranks on a machine that is attached. The texts are on the machine of the notebook, so ours runs there.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

SOLUTIONS = Path(__file__).parent / "solutions"

PART_OF = {"F": "f_and_g", "G": "f_and_g"}
"""Names that an exercise's solution has beside its function."""


def kept(exercise: str) -> Path:
    """The file with the text that passed the check of this exercise last."""
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "ringside" / "solved" / f"{exercise}.py"


def __getattr__(name: str) -> Any:
    """The student's function, else ours; ImportError if there is neither."""
    if name.startswith("__"):
        raise AttributeError(name)
    exercise = PART_OF.get(name, name)
    try:
        return _theirs(exercise)[name]
    except (OSError, KeyError):
        pass
    if not SOLUTIONS.exists():
        raise ImportError(
            f"{exercise} is not solved yet, and our solutions are not in this copy of the course: solve it, "
            "then run this cell again"
        )
    if not (SOLUTIONS / f"{exercise}.py").exists():
        raise AttributeError(f"there is no exercise {exercise!r}")
    print(f"with our {exercise}: yours is not solved yet")
    return getattr(import_module(f"course.solutions.{exercise}"), name)


def _theirs(exercise: str) -> dict[str, Any]:
    """What the student's text defines, run among the names that every rank has. OSError if there is none."""
    text = kept(exercise).read_text(encoding="utf-8")
    import torch
    import torch.distributed as dist

    names = {"__name__": __name__, "torch": torch, "dist": dist}
    if dist.is_initialized():
        names |= {"rank": dist.get_rank(), "world_size": dist.get_world_size()}
    exec(compile(text, str(kept(exercise)), "exec"), names)
    return names
