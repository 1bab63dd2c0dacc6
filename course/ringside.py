"""The command `ringside`, for an installed Ringside: `ringside lab [FOLDER]`, `ringside pages`, `ringside pack`,
`ringside handed-in FOLDER`, `ringside room CHAPTER`, `ringside exam SEED FOLDER`, `ringside homework CLASS FOLDER`,
`ringside withhold FOLDER`, `ringside release FOLDER CHAPTER`.

Left out: what make does for a checkout alone: set up, test, refresh.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from course import own

LECTURERS = ("pack", "room", "exam", "homework", "withhold", "release", "handed-in")
OPENED = [  # prints only the address, which opens the first chapter, warnings and errors; long output is kept
    "--LabApp.default_url=/lab/tree/00_start_here.ipynb",
    "--ZMQChannelsWebsocketConnection.iopub_data_rate_limit=1e9",
    "--log-level=WARN",  # of the server
    "--LabApp.log_level=WARN",
]
PACKAGES = ("collectives", "widgets", "launch", "course")


def lab(folder: str | None, flags: list[str]) -> int:
    """The student's copies in the folder, and JupyterLab on them; returns only if it cannot begin. JupyterLab refuses
    root, waits for a browser and cuts off what four ranks print unless told otherwise."""
    place = Path(folder) if folder else Path.home() / "ringside"
    if code := own.main([str(place)]):
        return code
    if hidden := [name for name in PACKAGES for path in (place / name, place / f"{name}.py") if path.exists()]:
        print(f"{place} has a module {hidden[0]}, which hides Ringside's: rename it", file=sys.stderr)
        return 1
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags = ["--allow-root", *flags]
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        flags = ["--no-browser", *flags]
    os.chdir(place)
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *OPENED, *flags])


def room(chapter: str, address: str | None, port: int, made: argparse.ArgumentParser) -> int:
    """The questions of a chapter in a room; the one that its notes give to the room comes first."""
    from course import chapters, notes, questions
    from course.teach.room import room, server

    try:
        name = chapters.name_of(chapters.chosen([chapter])[0].stem)
    except LookupError:
        made.error(f"there is no chapter {chapter}; say 05 or 05_all_reduce")
    return server.main(room.Room(questions.CHAPTERS[name].QUESTIONS, notes.NOTES[name].room), address, port)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="ringside", description="Learn collective communication by running it.")
    commands = made.add_subparsers(dest="command", required=True)
    one = commands.add_parser("lab", help="your own copies of the chapters, in JupyterLab; its options may follow")
    one.add_argument("folder", nargs="?", help="where your copies are kept (default: ringside in your home folder)")
    one = commands.add_parser("pages", help="the chapters as web pages that ask no other host for anything")
    one.add_argument("folder", nargs="?", default="pages", help="where they are written (default: pages)")
    one = commands.add_parser("pack", help="for teachers: notes, handouts, notebooks and animations of each chapter")
    one.add_argument("folder", nargs="?", default="pack", help="where they are written (default: pack)")
    one.add_argument("chapters", nargs="*", help="some chapters only, as 05 08")
    one = commands.add_parser("handed-in", help="who has solved what, from the files of check.export in a folder")
    one.add_argument("folder", help="the folder with the files")
    one.add_argument("--csv", action="store_true", help="for a spreadsheet")
    one.add_argument("--judge", action="store_true", help="judge each function once more on this machine")
    one.add_argument("--class", dest="listed", help="the list that `ringside homework` dealt variants to")
    one.add_argument("--page", help="write the class's progress into this page, again and again, until Ctrl-C")
    one = commands.add_parser("room", help="a chapter's questions on the phones of the room, until Ctrl-C")
    one.add_argument("chapter", help="as 05")
    one.add_argument("--address", help="of this machine in the room's network (default: found)")
    one.add_argument("--port", type=int, default=8080, help="(default: 8080)")
    one = commands.add_parser("exam", help="an exam of 60 minutes, as a notebook and its key")
    one.add_argument("seed", nargs="?", help="any text of 12 characters or more (default: drawn, and printed)")
    one.add_argument("folder", nargs="?", default="exam", help="where both are written (default: exam)")
    one.add_argument("--variants", type=int, default=1, help="the same questions with other numbers, up to 3")
    one = commands.add_parser("homework", help="for each student a notebook of exercises, neighbours with others")
    one.add_argument("listed", metavar="class", help="a text file with a line for each student")
    one.add_argument("folder", help="where the notebooks and their solutions are written")
    one.add_argument("chapters", nargs="*", help="of which chapters, as 05 08 (default: all)")
    one = commands.add_parser("withhold", help="a copy of the course for students, without solutions and answers")
    one.add_argument("folder", help="where it is made; the keys go beside it")
    one = commands.add_parser("release", help="open chapters of such a copy")
    one.add_argument("folder", help="the copy")
    one.add_argument("chapters", nargs="+", help="as 05 08")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; what a command needs is imported for that one alone."""
    made = parser()
    given, rest = made.parse_known_args(arguments)
    if rest and given.command != "lab":
        made.error(f"unknown: {' '.join(rest)}")
    if given.command in LECTURERS and importlib.util.find_spec("course.teach") is None:
        made.error("this is a copy for students; the lecturer's course has this command")
    if given.command == "lab":
        return lab(given.folder, rest)
    if given.command == "pages":
        from course import pages

        return pages.main([given.folder])
    if given.command == "pack":
        return subprocess.call([sys.executable, "-m", "course.pack", given.folder, *given.chapters])
    if given.command == "room":
        return room(given.chapter, given.address, given.port, made)
    if given.command == "exam":
        from course.teach import exam

        return exam.main(given.seed, Path(given.folder), given.variants)
    if given.command == "homework":
        from course.teach import homework

        return homework.main(Path(given.listed), Path(given.folder), given.chapters)
    if given.command in ("withhold", "release"):
        from course.teach import withhold

        place = Path(given.folder).resolve()
        return withhold.make(place) if given.command == "withhold" else withhold.open_up(place, given.chapters)
    from course.teach import handed_in

    flags = [*["--csv"] * given.csv, *["--judge"] * given.judge, *[f"--page={given.page}"] * bool(given.page)]
    flags += [f"--class={given.listed}"] * bool(given.listed)
    return handed_in.main([given.folder, *flags])


if __name__ == "__main__":
    sys.exit(main())
