"""`%%ranks` and `%ranks`: the command line of a cell, and what happens around its run.

%%ranks 4                  on 4 ranks, which live on; starts them where needed
%%ranks                    on the ranks that run (4 when none do)
%%ranks --only 0,2         on some of them
%%ranks 4 --bare           leaves the process group to the cell
%%ranks 4 --backend gloo   or nccl, which needs a GPU for every rank and is the default where they are there
%%ranks --record           keeps what the ranks sent: launch.recording()
%%ranks --watch            the same, and shows it in a Player under the cell
%ranks                     status;  %ranks restart;  %ranks stop
"""

from __future__ import annotations

import ast
import shlex
from dataclasses import dataclass

from launch import output
from launch.doing import doing
from launch.errors import CellSyntaxError, DeadlockError, RanksStopped, UsageError
from launch.machine import check_room, in_words
from launch.ranks import DEFAULT_SIZE, Ranks

_session: Ranks | None = None
_shown: dict[str, list] = {}  # cell of the notebook -> the widgets of its last run


def session() -> Ranks:
    """This notebook's ranks; UsageError before `%load_ext launch`."""
    if _session is None:
        raise UsageError("run %load_ext launch first")
    return _session


def load(shell) -> None:
    global _session
    if _session is None:
        _session = Ranks()
    shell.register_magic_function(ranks_cell, "cell", "ranks")
    shell.register_magic_function(ranks_line, "line", "ranks")


def unload(shell) -> None:
    global _session
    if _session is not None:
        _session.close()
        _session = None
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("ranks", None)


@dataclass
class Options:
    """What stands behind `%%ranks`."""

    size: int | None = None
    only: list[int] | None = None
    backend: str | None = None
    bare: bool = False
    record: bool = False
    watch: bool = False


def parse(line: str) -> Options:
    """The options of a `%%ranks` line; UsageError says in a sentence what is wrong with it."""
    options, words = Options(), shlex.split(line)
    while words:
        word, _, value = words.pop(0).partition("=")
        if word in ("--bare", "--record", "--watch"):
            setattr(options, word[2:], True)
        elif word in ("--only", "--backend"):
            if not value and not words:
                raise UsageError(f"{word} needs a value, as in %%ranks {word} {'0,2' if word == '--only' else 'gloo'}")
            value = value or words.pop(0)
            setattr(options, word[2:], numbers(value) if word == "--only" else backend(value))
        elif word.startswith("-"):
            known = "--only 0,2, --record, --watch, --bare and --backend gloo|nccl"
            raise UsageError(f"%%ranks knows no option {word}; there are {known}")
        elif options.size is not None:
            raise UsageError(f"%%ranks takes one number of ranks, as in %%ranks 4, got {options.size} and {word}")
        elif not word.isdecimal() or int(word) < 1:
            raise UsageError(f"%%ranks needs a number of ranks from 1 up, as in %%ranks 4, got {word}")
        else:
            options.size = int(word)
    return options


def numbers(text: str) -> list[int]:
    """'0,2' -> [0, 2]; '0-3' -> [0, 1, 2, 3]."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"--only takes rank numbers, as in --only 0,2 or --only 0-3, got {text}")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found)


def backend(text: str) -> str:
    if text not in ("gloo", "nccl"):
        raise UsageError(f"--backend is gloo or nccl, got {text}")
    return text


def ranks_cell(line: str, cell: str) -> None:
    """%%ranks: runs the cell on the ranks."""
    try:
        run_cell(line, cell)
    except RanksStopped:
        raise
    except KeyboardInterrupt:  # it struck in our own code, on the way there or back
        raise RanksStopped("stopped; the ranks were not at work at that moment") from None


def run_cell(line: str, cell: str) -> None:
    """Starts what is needed, runs the cell, shows and raises what the ranks answered."""
    from IPython import get_ipython

    shell, ranks, options = get_ipython(), session(), parse(line)
    check_syntax(shell, line, cell)
    if options.only:
        size = options.size or ranks.size or DEFAULT_SIZE
        beyond = [rank for rank in options.only if rank >= size]
        if beyond:
            raise UsageError(f"there is no rank {beyond[0]}: --only chooses among {size} ranks, 0 to {size - 1}")
    check_room(options.size or ranks.size, ranks.size)
    forget_last_run(shell)
    viewer = make_viewer(options.size or ranks.size or DEFAULT_SIZE)
    show(shell, viewer)
    try:
        ranks.ensure(options.size, options.backend, options.bare, viewer)
        record = options.record or options.watch
        if record:
            ranks.start_recording()
        answers = ranks.execute(with_line_numbers(line, cell), options.only, shell.execution_count, viewer)
        if record:
            ranks.stop_recording()
    finally:
        viewer.finish()
        for notice in ranks.take_notices():
            print(notice)
    output.show(answers)
    if options.watch and (len(ranks.recording().steps) or all(answer.status == "ok" for answer in answers)):
        from widgets import Player  # but an error that came before anything was sent needs no empty picture

        show(shell, Player(ranks.recording()))
    try:
        output.raise_failures(answers, stopped=any(answer.was_doing for answer in answers))
    except DeadlockError as error:
        from widgets.wait_for import WaitFor

        show(shell, WaitFor(error.edges, ranks.size))
        raise


def notebook_cell(shell) -> str:
    """By which name the front end knows the cell under way; "" if it does not say."""
    kernel = getattr(shell, "kernel", None)
    return kernel.get_parent().get("metadata", {}).get("cellId", "") if kernel else ""


def show(shell, widget) -> None:
    """Displays the widget under the cell, until the cell is run again."""
    from IPython.display import display

    if cell := notebook_cell(shell):
        _shown.setdefault(cell, []).append(widget)
    display(widget)


def forget_last_run(shell) -> None:
    """The front end has taken what the cell's last run displayed off the page; here and there it would live on."""
    for widget in _shown.pop(notebook_cell(shell), ()):
        widget.close()


def make_viewer(size: int):
    """The widget that shows the cell while it runs; imported late, since it takes a moment."""
    from widgets import RankLog

    return RankLog(ranks=size)


def with_line_numbers(line: str, cell: str) -> str:
    """The cell for the ranks, in which line 2 is line 2 of the notebook's cell."""
    return cell if cell.lstrip().startswith("%%") else f"#%%ranks {line}\n{cell}"


def check_syntax(shell, line: str, cell: str) -> None:
    """Raises what is wrong with the cell's syntax here, so that it is shown once and no rank hears of it."""
    code = with_line_numbers(line, cell)
    try:
        transformed = shell.transform_cell(code)
        name = shell.compile.cache(transformed, shell.execution_count, raw_code=code)
        compile(transformed, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        report = shell.SyntaxTB.structured_traceback(type(error), error, [])
        raise CellSyntaxError(f"{error.msg} (line {error.lineno})", report) from None


def ranks_line(line: str) -> None:
    """%ranks: status of the ranks; %ranks restart, %ranks stop."""
    ranks, word = session(), line.strip()
    if word == "stop":
        print(f"{ranks.size} ranks stopped" if ranks.size else "no ranks are running")
        ranks.stop()
    elif word == "restart":
        ranks.restart()
        print(f"{ranks.size} ranks restarted; their variables are new")
    elif word:
        raise UsageError(f"%ranks is followed by nothing, restart or stop, got {word}")
    elif not ranks.size:
        print("no ranks are running: start some with %%ranks 4")
    else:
        rows = [("rank", "pid", "backend", "memory", "doing")]
        for status in ranks.status():
            rows.append(
                (str(status.rank), str(status.pid), status.backend, in_words(status.memory), doing(status.doing))
            )
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
