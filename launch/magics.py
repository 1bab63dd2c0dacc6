"""`%%ranks` and `%ranks`: parses the line, runs the cell, shows what comes back.

`%%ranks?` lists the options of a cell, which are declared at `ranks_cell`. `%ranks?` lists the `%ranks NAME` commands.

Left out: the ranks themselves (launch/ranks.py), the text below a cell (launch/kernel/output.py).
"""

from __future__ import annotations

import ast
import shlex
import sys
from argparse import ArgumentError, Namespace
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial

from IPython import get_ipython
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments

from collectives import units
from launch import export, networks
from launch.backends import BACKENDS
from launch.doctor.snapshot import How
from launch.kernel import output, whereabouts
from launch.kernel.watchdog import doing
from launch.load_hint import help_with_errors
from launch.ranks import DEFAULT_SIZE, Ranks
from launch.shared.errors import CellSyntaxError, DeadlockError, RankError, RanksStopped, UsageError, name_ranks

MOST_HINTS = 6  # lines; the same sentence for several ranks is one

_session: Ranks | None = None
_limit = ""  # what the last cell said of its network
_network = None  # the network of cells without --network: a name, a Network, a Topology
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
    """A name in collectives.presets.PLAYED, or "off"."""
    if text != "off":
        networks.chosen(text, 1)
    return text


# An option is declared here and nowhere else; its metavar is the example that errors show.
@magic_arguments("%ranks")
@argument("size", nargs="*", metavar="4", help="the number of ranks; they are started if needed and keep running")
@argument("--only", type=numbers, metavar="0,2", help="run the cell on some of the ranks")
@argument("--record", action="store_true", help="keep what the ranks send: launch.recording()")
@argument("--watch", action="store_true", help="the same, and show it in a Player below the cell")
@argument("--network", type=network_name, metavar="ethernet", help="run the cell on this network; off: on none")
@argument("--bare", action="store_true", help="make no process group: the cell does it")
@argument("--backend", type=backend, metavar="gloo", help="gloo, or nccl: the default if every rank has a GPU")
def ranks_cell(line: str, cell: str) -> None:
    """Runs the cell on the ranks."""
    try:
        run_cell(line, cell)
    except RanksStopped:
        raise
    except KeyboardInterrupt:  # raised in the launcher's own code, before or after the cell
        raise RanksStopped("stopped; no rank was running a cell") from None


PARSER: MagicArgumentParser = ranks_cell.parser  # type: ignore[attr-defined]
PARSER.exit_on_error = PARSER.allow_abbrev = False
PARSER.usage = "%%ranks"  # argparse would format its own on every call
OPTIONS = {action.option_strings[0]: action.metavar for action in PARSER._actions if action.option_strings}


def parse(line: str) -> Namespace:
    """The options of a `%%ranks` line. UsageError says in one sentence what is wrong with it."""
    try:
        options, unknown = PARSER.parse_known_intermixed_args(shlex.split(line))
    except ArgumentError as error:
        name = error.argument_name or ""
        example = f"needs a value, as in %%ranks {name} {OPTIONS[name]}" if OPTIONS[name] else "takes no value"
        raise UsageError(f"{name} {example}") from None
    if unknown:
        known = ", ".join(f"{name} {example}" if example else name for name, example in OPTIONS.items())
        raise UsageError(f"%%ranks knows no option {unknown[0].partition('=')[0]}; there are {known}")
    for text in options.size:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"%%ranks needs a number of ranks from 1 up, as in %%ranks 4, got {text}")
    if len(options.size) > 1:
        raise UsageError(f"%%ranks takes one number of ranks, as in %%ranks 4, got {' and '.join(options.size)}")
    options.size = int(options.size[0]) if options.size else None
    return options


def run_cell(line: str, cell: str) -> None:
    """Starts what is needed, runs the cell, shows and raises what the ranks answered."""
    shell, ranks, options = get_ipython(), session(), parse(line)
    code = with_line_numbers(line, cell)
    check_syntax(shell, code)
    check_size(ranks, options)
    network = {None: _network, "off": None}.get(options.network, options.network)
    viewer = make_viewer(options.size or ranks.size or DEFAULT_SIZE, network)
    forget_last_run(shell)
    show(shell, viewer)
    try:
        ranks.ensure(options.size, options.backend, options.bare, viewer)
        play_for_cell(ranks, network)
        ran = keep_for_export(shell, ranks, options, cell)
        record = options.record or options.watch
        answers = ranks.execute(code, options.only, number_of_cell(shell), viewer, record)
    finally:
        end_network(ranks, options)
        viewer.finish()
        for notice in ranks.take_notices():
            print(notice)
    output.show(answers)
    failure = output.failure(answers)
    helpful = output.prefixed_lines(hints_for(answers, shell, ranks))
    if failure:
        if isinstance(failure, RankError):
            failure.hints = helpful
        failure.afterwards = partial(show_pictures, shell, ranks, options, failure)  # below the error's text
        raise failure
    ran.ended = True
    print(end="".join(f"{line}\n" for line in helpful))
    show_pictures(shell, ranks, options)


def check_size(ranks: Ranks, options: Namespace) -> None:
    """UsageError for ranks that do not exist or do not fit; says so if starting them takes long."""
    size = options.size or ranks.size or DEFAULT_SIZE
    if options.only and options.only[-1] >= size:
        beyond = next(rank for rank in options.only if rank >= size)
        raise UsageError(f"there is no rank {beyond}: --only chooses among {size} ranks, 0 to {size - 1}")
    if notice := ranks.supervisor.site.check_room(options.size or ranks.size, ranks.size):
        print(notice, flush=True)


def keep_for_export(shell, ranks: Ranks, options: Namespace, cell: str) -> export.Ran:
    """Notes the cell for `%ranks export`; it has not ended yet."""
    now = ranks.supervisor
    ran = export.Ran(number_of_cell(shell), notebook_cell(shell), cell, now.size, now.backend, options.only, now.bare)
    ran.played = ranks.network is not None
    _ran.append(ran)
    return ran


def play_for_cell(ranks: Ranks, network) -> None:
    """Plays the cell's network, else the one for all cells. Its limit is printed once, not below each cell."""
    global _limit
    ranks.play(network)
    before, _limit = _limit, networks.too_fast(ranks.network, ranks.size) if ranks.network is not None else ""
    if _limit and _limit != before:
        ranks.supervisor.notices.append(_limit)


def end_network(ranks: Ranks, options: Namespace) -> None:
    """Ends a network of this cell alone."""
    if options.network:
        ranks.play(_network)


def show_pictures(shell, ranks: Ranks, options: Namespace, failure=None) -> None:
    """Shows which ranks waited for which, and what was sent; nothing if the cell failed before it sent anything."""
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
    """[(ranks, sentence)] about what they raised and what the cell has left behind."""
    found = []
    own = [answer for answer in answers if answer.how is not How.FREED]  # freed ranks made no mistake
    for who, hint in output.alike(own, lambda answer: answer.hint):
        try:
            said = whereabouts.for_ranks(hint, who, shell, ranks) if hint.missing else hint.text
        except RankError:  # a rank has died since; the next cell reports it
            said = hint.text
        found += [(who, said)] if said else []
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        found.append(([answer.rank for answer in answers if note in answer.notes], note))
    return list({text: (who, text) for who, text in reversed(found)}.values())[-MOST_HINTS:][::-1]  # each once


def number_of_cell(shell) -> int:
    """The number that the front end shows for the running cell; shell.execution_count is the next one already."""
    return len(shell.user_ns["In"]) - 1


def notebook_cell(shell) -> str:
    """The front end's id of the running cell; "" if it has none."""
    kernel = getattr(shell, "kernel", None)
    return kernel.get_parent().get("metadata", {}).get("cellId", "") if kernel else ""


def show(shell, widget) -> None:
    """Displays the widget under the cell, until the cell is run again."""
    from IPython.display import publish_display_data

    if cell := notebook_cell(shell):
        _shown.setdefault(cell, []).append(widget)
    publish_display_data(*widget._repr_mimebundle_())  # display() would ask twelve formatters first


def forget_last_run(shell) -> None:
    """Closes the widgets of the cell's last run, which the front end has removed from the page and would keep alive."""
    for widget in _shown.pop(notebook_cell(shell), ()):
        widget.close()


def make_viewer(size: int, network=None):
    """The widget that shows the running cell. UsageError if there is no such network or it has too few ranks."""
    from widgets import RankLog

    found = networks.chosen(network, size)
    return RankLog(ranks=size, network="" if found is None else networks.in_words(found, size))


def with_line_numbers(line: str, cell: str) -> str:
    """The cell for the ranks, in which line 2 is line 2 of the notebook's cell."""
    return cell if cell.lstrip().startswith("%%") else f"#%%ranks {line}\n{cell}"


def check_syntax(shell, code: str) -> None:
    """Raises a syntax error of the cell here, so that it is shown once and no rank gets the cell."""
    try:
        transformed = shell.transform_cell(code)
        name = shell.compile.cache(transformed, number_of_cell(shell), raw_code=code)
        compile(transformed, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        report = shell.SyntaxTB.structured_traceback(type(error), error, [])
        raise CellSyntaxError(f"{error.msg} (line {error.lineno})", report) from None


COMMANDS: dict[str, Callable[[Ranks, str], str]] = {}
"""What `%ranks NAME ...` does: a function of the ranks and of the words after the name; what it returns is printed."""


def command(function: Callable[[Ranks, str], str]) -> Callable[[Ranks, str], str]:
    COMMANDS[function.__name__.rstrip("_")] = function
    return function


@command
def restart(ranks: Ranks, words: str) -> str:
    """new processes; all variables are new"""
    ranks.restart()
    return f"{ranks.size} ranks restarted; their variables are new"


@command
def stop(ranks: Ranks, words: str) -> str:
    """ends the ranks"""
    said = f"{ranks.size} ranks stopped" if ranks.size else "no ranks are running"
    ranks.stop()
    return said


@command
def network(ranks: Ranks, words: str) -> str:
    """the network of all cells from now on; off: none"""
    if words:
        play(None if words == "off" else words)
    if ranks.network is None:
        return "cells run without a network of their own, as fast as this machine is"
    size = ranks.size or DEFAULT_SIZE
    said = f"cells run on {networks.in_words(ranks.network, size)}; %ranks network off ends it"
    return "\n".join(filter(None, [said, networks.too_fast(ranks.network, size)]))


@command
def export_(ranks: Ranks, words: str) -> str:
    """writes the cells as a script for torchrun"""
    names = shlex.split(words)
    if len(names) != 1:
        raise UsageError("%ranks export needs the name of one file, as in %ranks export ring.py")
    return export.export(names[0], _ran)


@command
def attach(ranks: Ranks, words: str) -> str:
    """runs the ranks on other machines, which torchrun or srun start; off: on this one again"""
    from launch.machine import attached  # loads an encrypted transport that one machine does not need

    return attached.attach(ranks, words)


def ranks_line(line: str) -> None:
    ranks, (name, _, words) = session(), line.strip().partition(" ")
    if name in COMMANDS:
        said = COMMANDS[name](ranks, words.strip())
    elif name:
        raise UsageError(meant_by(line.strip()))
    elif not ranks.size:
        said = "no ranks are running: start some with %%ranks 4"
    else:
        said = "\n".join(status_lines(ranks))
    print(said)


ranks_line.__doc__ = "%ranks says what the ranks are doing.\n\n" + "\n".join(
    f"%ranks {name:8} {function.__doc__}" for name, function in COMMANDS.items()
)


def play(network) -> None:
    """All cells from now on run on `network`, see `launch.network`."""
    global _network
    session().play(network)
    _network = network


def meant_by(words: str) -> str:
    """What to write instead of `%ranks words`, which is no command."""
    try:
        parse(words)
    except (UsageError, ValueError):
        close = get_close_matches(words.lower().split()[0], COMMANDS, n=1, cutoff=0.75)
        meant = f"did you mean %ranks {close[0]}? " if close else ""
        return f"{meant}%ranks says what the ranks are doing, %ranks restart makes new ones, %ranks stop ends them"
    return f"to run a cell on ranks, begin it with two percent signs: %%ranks {words} in its first line"


def status_lines(ranks: Ranks) -> list[str]:
    """A table of the ranks, then a sentence for each thing that the student may have to fix."""
    status, lost = ranks.status(), ranks.lost()
    rows = [("rank", "pid", "backend", "memory", "doing", "machine" if any(one.machine for one in status) else "")]
    for one in status:
        at_rest = one.doing.state in ("idle", "new")
        now = "dead" if one.rank in lost else "ready" if at_rest else doing(one.doing)
        rows.append((str(one.rank), str(one.pid), one.backend, units.size(one.memory), now, one.machine))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"rank {rank} died ({how}): the next cell restarts it, without variables" for rank, how in lost.items()]
    return lines + ([] if lost else [f"{name_ranks(who)}: {said}" for who, said in ranks.to_do()])
