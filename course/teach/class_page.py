"""`ringside handed-in FOLDER --page FILE`: the class's progress as a page, updated every ten seconds.

Open FILE in a browser: it reloads itself. Each student has a row with a bar of solved exercises. Below the table are
the five exercises that the most students have tried and not solved.

Left out: verdicts of `--judge`, which take minutes. Until then a file is believed.
"""

import sys
import time
from collections import Counter
from html import escape
from pathlib import Path

from course.exercises import EXERCISES

SECONDS = 10

HEAD = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="{SECONDS}">
<title>Ringside: the class</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.1rem/1.5 system-ui, sans-serif; margin: 2rem; }}
td, th {{ padding: .1rem 1.5rem .1rem 0; text-align: left; }}
progress {{ width: 20rem; }}
</style>
"""


def page(found: dict[str, dict], predicted: dict[str, tuple[int, int]], others: list[str]) -> str:
    """The page: `found` as handed_in.read gives it, and of how many first answers how many were right."""
    solved = {who: sum(bool(works.get(name, {}).get("solved")) for name in EXERCISES) for who, works in found.items()}
    rows = [
        f'<tr><td>{escape(who)}<td><progress max="{len(EXERCISES)}" value="{count}"></progress> {count}'
        f"<td>{predicted[who][0]} of {predicted[who][1]}"
        for who, count in sorted(solved.items(), key=lambda each: (-each[1], each[0]))
    ]
    open_of = Counter(
        name
        for works in found.values()
        for name, work in works.items()
        if name in EXERCISES and work["attempts"] and not work["solved"]
    )
    stuck = [f"{name} ({count})" for name, count in open_of.most_common(5)]
    head = f"<tr><th>who<th>solved of {len(EXERCISES)}<th>predicted right"
    parts = [HEAD, f"<h1>{len(found)} {'student' if len(found) == 1 else 'students'}</h1>", f"<table>{head}"]
    parts += [*rows, "</table>"]
    parts += [f"<p>Tried and open: {', '.join(stuck)}</p>"] if stuck else []
    parts += [f"<p>Not read: {escape(', '.join(others))}</p>"] if others else []
    return "\n".join(parts) + "\n"


def keep_up(path: Path, make, wait=time.sleep) -> int:
    """Write `make()` to the file again and again until Ctrl-C; 1 if it cannot be written, which is said."""
    print(f"open {path}; Ctrl-C ends it", flush=True)
    try:
        while True:
            text = make()
            try:
                beside = path.with_name(f".{path.name}.part")
                beside.write_text(text, encoding="utf-8")
                beside.replace(path)  # as a whole: the browser may read it now
            except (OSError, ValueError) as error:  # ValueError: "." has no name
                why = getattr(error, "strerror", "it is a folder")
                print(f"{path} cannot be written: {why}; name another file", file=sys.stderr)
                return 1
            wait(SECONDS)
    except KeyboardInterrupt:
        return 0
