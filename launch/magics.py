"""`%%ranks` and `%ranks`: the command line of a cell, and what happens around its run.

%%ranks 4                  on 4 ranks, which live on; starts them where needed
%%ranks                    on the ranks that run (4 when none do)
%%ranks --only 0,2         on some of them
%%ranks 4 --bare           leaves the process group to the cell
%%ranks 4 --backend gloo   or nccl, which needs a GPU for every rank and is the default where they are there
%%ranks --record           keeps what the ranks sent: launch.recording()
%%ranks --watch            the same, and shows it in a Player under the cell
%%ranks --network ethernet on a slow network, as collectives.presets.PLAYED has them
%ranks network ethernet    for all cells that follow;  %ranks network off
%ranks                     status;  %ranks restart;  %ranks stop
%ranks attach              ranks on other machines, which torchrun or srun start;  %ranks attach off
%ranks export ring.py      writes the cells as a script for torchrun
"""

from __future__ import annotations

import ast
import os
import shlex
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from collectives import units
from launch import export, networks
from launch.attach import attach
from launch.backends import BACKENDS
from launch.doctor.snapshot import How
from launch.kernel import output, whereabouts
from launch.kernel.machine import check_room
from launch.kernel.watchdog import doing
from launch.ranks import DEFAULT_SIZE, Ranks
from launch.shared.errors import CellSyntaxError, DeadlockError, RankError, RanksStopped, UsageError, name_ranks
from launch.signpost import help_with_errors

MANY = 32  # ranks whose start takes so long that this is said before
START = 0.3  # seconds of one core in which a rank starts
MOST_HINTS = 6  # lines; the same sentence for several ranks is one

_session: Ranks | None = None
_limits: list[str] = []  # what the last cell said of its network
_network = None  # what all cells run on that name none: a name, a Network, a Topology
_ran: list[export.Ran] = []  # the cells so far, for %ranks export
_shown: dict[str, list] = {}  # cell of the notebook -> the widgets of its last run


def session() -> Ranks:
    """This notebook's ranks; UsageError before `%load_ext launch`, and on a rank."""
    if _session is None:
        on_rank = "launch.rank.main" in sys.modules
        here = "this belongs to the notebook: use it in a cell without %%ranks"
        raise UsageError(here if on_rank else "run %load_ext launch first")
    return _session


def loaded() -> Ranks | None:
    """This notebook's ranks; None before `%load_ext launch`."""
    return _session


def load(shell) -> None:
    global _session
    if _session is None:
        _session = Ranks()
    shell.register_magic_function(ranks_cell, "cell", "ranks")
    shell.register_magic_function(ranks_line, "line", "ranks")
    help_with_errors(shell)


def unload(shell) -> None:
    global _session
    if _session is not None:
        _session.close()
        _session = None
    _ran.clear()
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
    network: str | None = None


def parse(line: str) -> Options:
    """The options of a `%%ranks` line; UsageError says in a sentence what is wrong with it."""
    options, words = Options(), shlex.split(line)
    while words:
        word, _, value = words.pop(0).partition("=")
        if word in ("--bare", "--record", "--watch"):
            setattr(options, word[2:], True)
        elif word in VALUES:
            example, read = VALUES[word]
            if not value and not words:
                raise UsageError(f"{word} needs a value, as in %%ranks {word} {example}")
            setattr(options, word[2:], read(value or words.pop(0)))
        elif word.startswith("-"):
            known = "--only 0,2, --record, --watch, --network ethernet, --bare"
            known += f" and --backend {'|'.join(BACKENDS)}"
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
    if text not in BACKENDS:
        raise UsageError(f"--backend is {' or '.join(BACKENDS)}, got {text}")
    return text


def network_name(text: str) -> str:
    """A name of a network that is known, or "off"."""
    if text != "off":
        networks.chosen(text, 1)
    return text


VALUES: dict = {
    "--only": ("0,2", numbers),
    "--backend": ("gloo", backend),
    "--network": ("ethernet", network_name),
}


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
    code = with_line_numbers(line, cell)
    check_syntax(shell, code)
    if options.only:
        size = options.size or ranks.size or DEFAULT_SIZE
        beyond = [rank for rank in options.only if rank >= size]
        if beyond:
            raise UsageError(f"there is no rank {beyond[0]}: --only chooses among {size} ranks, 0 to {size - 1}")
    if not ranks.attached:
        check_room(options.size or ranks.size, ranks.size)
        if options.size and options.size != ranks.size and options.size >= MANY:
            seconds = max(1, round(options.size * START / (os.cpu_count() or 1)))
            print(f"{options.size} ranks take about {seconds} seconds to start here", flush=True)
    forget_last_run(shell)
    network = {None: _network, "off": None}.get(options.network, options.network)
    viewer = make_viewer(options.size or ranks.size or DEFAULT_SIZE, network)
    show(shell, viewer)
    try:
        ranks.ensure(options.size, options.backend, options.bare, viewer)
        play_for_cell(ranks, network)
        ran = note(shell, ranks, options, cell)
        record = options.record or options.watch
        if record:
            ranks.start_recording()
        answers = ranks.execute(code, options.only, number_of_cell(shell), viewer)
        if record:
            ranks.stop_recording()
    finally:
        end_network(ranks, options, viewer)
        viewer.finish()
        for notice in ranks.take_notices():
            print(notice)
    output.show(answers)
    helpful = output.prefixed_lines(hints_for(answers, shell, ranks))
    try:
        output.raise_failures(answers, stopped=any(answer.was_doing for answer in answers))
    except (RankError, RanksStopped) as error:
        if isinstance(error, RankError):
            error.hints = helpful
        error.afterwards = partial(show_pictures, shell, ranks, options, error)  # below it, where they hide nothing
        raise
    ran.ended = True
    print(end="".join(f"{line}\n" for line in helpful))
    show_pictures(shell, ranks, options)


def note(shell, ranks: Ranks, options: Options, cell: str) -> export.Ran:
    """Keeps the cell for a script; it has not ended yet."""
    _ran.append(
        export.Ran(
            number_of_cell(shell),
            notebook_cell(shell),
            cell,
            ranks.size,
            ranks.supervisor.backend,
            options.only,
            ranks.supervisor.bare,
            played=ranks.network is not None,
        )
    )
    return _ran[-1]


def play_for_cell(ranks: Ranks, network) -> None:
    """The cell's own network or the one of all cells; where it does not fit, that is said once."""
    global _limits
    ranks.play(network)
    before, _limits = _limits, []
    if ranks.network is not None:
        _limits = [networks.too_fast(ranks.network, ranks.size), networks.UNPACED if ranks.unpaced else ""]
    ranks.supervisor.notices += [limit for limit in _limits if limit and limit not in before]


def end_network(ranks: Ranks, options: Options, viewer) -> None:
    """What was reached goes to the log alone: it differs on each run. Of a network of this cell alone nothing stays."""
    if ranks.network is not None and ranks.carried is not None:
        viewer.reached = networks.measured(ranks.network, ranks.carried)
    if options.network:
        ranks.play(_network)


def show_pictures(shell, ranks: Ranks, options: Options, failure=None) -> None:
    """Who waited for whom, and what was sent. Of a cell that failed before it sent anything there is no picture."""
    if isinstance(failure, DeadlockError):
        from widgets.wait_for import WaitFor

        show(shell, WaitFor(failure.edges, ranks.size))
    if options.watch:
        recording = ranks.recording()
        if len(recording.steps) or (recording.events and not failure):
            from widgets import Player

            show(shell, Player(recording))
        elif not failure:
            print("nothing was sent in this cell, so there is nothing to watch")


def hints_for(answers: list, shell, ranks: Ranks) -> list[tuple[list[int], str]]:
    """[(ranks, sentence)]: what helps with what they raised, and what the cell has left behind."""
    found = []
    own = [answer for answer in answers if answer.how is not How.FREED]  # what comes after that is no mistake of theirs
    for who, hint in output.alike(own, lambda answer: answer.hint):
        try:
            said = whereabouts.for_ranks(hint, who, shell, ranks) if hint.missing else hint.text
        except RankError:  # a rank has died since; the next cell says so
            said = hint.text
        found += [(who, said)] if said else []
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        found.append(([answer.rank for answer in answers if note in answer.notes], note))
    return list({text: (who, text) for who, text in reversed(found)}.values())[-MOST_HINTS:][::-1]  # each once


def number_of_cell(shell) -> int:
    """The number that the front end shows beside the cell under way; shell.execution_count is the next one already."""
    return len(shell.user_ns["In"]) - 1


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


def make_viewer(size: int, network=None):
    """The widget that shows the cell while it runs; imported late, since it takes a moment. UsageError if there is no
    such network, or it is too small."""
    from widgets import RankLog

    found = networks.chosen(network, size)
    return RankLog(ranks=size, network="" if found is None else networks.in_words(found, size))


def with_line_numbers(line: str, cell: str) -> str:
    """The cell for the ranks, in which line 2 is line 2 of the notebook's cell."""
    return cell if cell.lstrip().startswith("%%") else f"#%%ranks {line}\n{cell}"


def check_syntax(shell, code: str) -> None:
    """Raises what is wrong with the cell's syntax here, so that it is shown once and no rank hears of it."""
    try:
        transformed = shell.transform_cell(code)
        name = shell.compile.cache(transformed, number_of_cell(shell), raw_code=code)
        compile(transformed, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        report = shell.SyntaxTB.structured_traceback(type(error), error, [])
        raise CellSyntaxError(f"{error.msg} (line {error.lineno})", report) from None


def ranks_line(line: str) -> None:
    """%ranks: status of the ranks; %ranks restart, %ranks stop, %ranks network, %ranks export."""
    ranks, word = session(), line.strip()
    if word.split()[:1] == ["export"]:
        print(export.export(script_name(word.removeprefix("export")), _ran))
    elif word.split()[:1] == ["attach"]:
        attach(ranks, word.removeprefix("attach").strip())
    elif word.split()[:1] == ["network"]:
        print(set_network(word.removeprefix("network").strip()))
    elif word == "stop":
        print(f"{ranks.size} ranks stopped" if ranks.size else "no ranks are running")
        ranks.stop()
    elif word == "restart":
        ranks.restart()
        print(f"{ranks.size} ranks restarted; their variables are new")
    elif word:
        raise UsageError(meant_by(word))
    elif not ranks.size:
        print("no ranks are running: start some with %%ranks 4")
    else:
        print("\n".join(status_lines(ranks)))


def script_name(words: str) -> str:
    """The one file that `%ranks export` names."""
    names = shlex.split(words)
    if len(names) != 1:
        raise UsageError("%ranks export needs the name of one file, as in %ranks export ring.py")
    return names[0]


def play(network) -> None:
    """All cells from now on run on `network`, see `launch.network`."""
    global _network
    session().play(network)
    _network = network


def set_network(name: str) -> str:
    """What `%ranks network NAME` answers."""
    ranks = session()
    if name:
        play(None if name == "off" else name)
    if ranks.network is None:
        return "cells run without a network of their own, as fast as this machine is"
    size = ranks.size or DEFAULT_SIZE
    said = f"cells run on {networks.in_words(ranks.network, size)}; %ranks network off ends it"
    return "\n".join(filter(None, [said, networks.too_fast(ranks.network, size)]))


def meant_by(words: str) -> str:
    """What to write instead of `%ranks words`, which means nothing."""
    try:
        parse(words)
    except (UsageError, ValueError):
        close = get_close_matches(
            words.lower().split()[0], ["restart", "stop", "network", "export", "attach"], n=1, cutoff=0.75
        )
        meant = f"did you mean %ranks {close[0]}? " if close else ""
        return f"{meant}%ranks says what the ranks are doing, %ranks restart makes new ones, %ranks stop ends them"
    return f"to run a cell on ranks it begins with two signs: %%ranks {words} in its first line"


def status_lines(ranks: Ranks) -> list[str]:
    """A table of the ranks, and below it a sentence for each thing that the student may have to do."""
    status, lost = ranks.status(), ranks.lost()
    rows = [("rank", "pid", "backend", "memory", "doing", "machine" if ranks.attached else "")]
    for one in status:
        at_rest = one.doing.state in ("idle", "new")
        now = "dead" if one.rank in lost else "ready" if at_rest else doing(one.doing)
        rows.append((str(one.rank), str(one.pid), one.backend, units.size(one.memory), now, one.machine))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"rank {rank} died ({how}): the next cell starts it anew, empty" for rank, how in lost.items()]
    return lines + ([] if lost else [f"{name_ranks(who)}: {said}" for who, said in ranks.to_do()])
