"""What a lecturer has withheld from this copy of the course, and releases by chapter (course/teach/withhold.py).

In such a copy the folder `sealed` has one encrypted file a chapter, with our solutions and the answers to its
questions. A released chapter's key is in that folder, or, of a copy that the lecturer cannot reach, beside the
student's progress, where `check.release("...")` puts it. In a copy from which nothing is withheld there is no such
folder, and nothing here does anything.

Ranks import this module, so it loads nothing that they do not need.
"""

import json
from contextlib import suppress
from pathlib import Path

SEALED = Path(__file__).parent / "sealed"
RELEASED = "released.json"  # {chapter: key}, in SEALED and beside the progress


def released() -> dict[str, dict[str, str]]:
    """By chapter what is open by now: the text of each file, by its path in the folder `course`."""
    return {name: files for name, key in _keys().items() if (files := _opened(name, key))}


def text(path: str) -> str:
    """The text of such a file; "" if it is not released."""
    return next((files[path] for files in released().values() if path in files), "")


def release(words: str = "") -> None:
    """Open a chapter in this copy: `words` are its name and its key, as the lecturer gives them out."""
    name, _, key = str(words).strip().partition(" ")
    if not _opened(name, key):
        print("That opens no chapter of this copy: copy the whole line that your lecturer gave you.")
        return
    file = _mine()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_read(file) | {name: key}, indent=1) + "\n", encoding="utf-8")
    from course.questions import unseal

    unseal()
    print(f'{name} is open: check.solution("...") shows ours, and course.again() asks its questions once more.')


def _keys() -> dict[str, str]:
    return _read(SEALED / RELEASED) | _read(_mine()) if SEALED.exists() else {}


def _mine() -> Path:
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "ringside" / RELEASED


def _read(file: Path) -> dict[str, str]:
    with suppress(OSError, ValueError):
        return json.loads(file.read_text(encoding="utf-8"))
    return {}


def _opened(name: str, key: str) -> dict[str, str]:
    """The files of a chapter; {} if this is not its key."""
    from cryptography.fernet import Fernet, InvalidToken

    with suppress(OSError, ValueError, InvalidToken):  # ValueError: no key at all
        return json.loads(Fernet(key).decrypt((SEALED / f"{Path(name).name}.bin").read_bytes()))
    return {}
