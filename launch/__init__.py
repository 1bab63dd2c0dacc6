"""Ringside's launcher: notebook cells on many processes. `%load_ext launch`, then `%%ranks 4`.

Importing this package is cheap, since the agent and every rank do it, too: functions import what they need.
"""

__all__ = ["DeadlockError", "LaunchError", "RankError", "UsageError", "network", "pull", "push", "recording"]


def load_ipython_extension(shell):
    """`%load_ext launch`: registers the magics and starts the agent in the background. Returns at once."""
    from launch.load_hint import shadowed

    if told := shadowed():
        raise ImportError(told)
    from launch.magics import load

    load(shell)


def unload_ipython_extension(shell):
    """`%unload_ext launch`: ends the ranks and the agent."""
    from launch.magics import unload

    unload(shell)


def pull(name: str) -> list | dict:
    """The variable `name` of every rank, as a list indexed by rank.

    If some ranks do not have it, this says which, and gives {rank: value} of those that do.
    """
    from launch.magics import session
    from launch.shared.errors import UsageError, name_ranks

    ranks = session()
    if not isinstance(name, str) or not name.isidentifier():
        what = repr(name) if isinstance(name, str) else f"a {type(name).__name__}"
        raise UsageError(f'launch.pull wants the name of one variable, as in launch.pull("x"), got {what}')
    found = ranks.find(name)
    if len(found) == ranks.size:
        return list(found.values())
    lacking = set(range(ranks.size)) - found.keys()
    has = "has" if len(lacking) == 1 else "have"
    print(f"{name_ranks(lacking)} {has} no variable {name}; this is {{rank: {name}}} of {name_ranks(found)}")
    return found


def push(*unnamed, **values) -> None:
    """Sets variables on every rank: `push(x=3, y=tensor)`. TypeError names what cannot travel."""
    from launch.magics import session
    from launch.shared.errors import UsageError

    if unnamed or not values:
        raise UsageError("launch.push wants a name for every value, as in launch.push(x=3)")
    if taken := values.keys() & {"rank", "world_size", "torch", "dist"}:
        raise UsageError(f"every rank has its own {min(taken)}, and cells count on it: push this under another name")
    session().push(**values)


def network(network=None) -> None:
    """Runs cells from now on on that network: "ethernet" (or another name in collectives.presets.PLAYED), a Network or
    a Topology of collectives; None ends it. The same object predicts: `schedule.cost(nbytes=N, network=...)`.
    """
    from launch.magics import play

    play(network)


def recording():
    """What the ranks sent in the last cell with --record or --watch: a Recording, which is a Schedule.

    After a check it is the run that was judged: the one that failed, or the first of a solved exercise.
    """
    from launch.magics import session

    return session().recording()


def __getattr__(name: str):
    if name in __all__:  # an error; the functions are here
        from launch.shared import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'launch' has no attribute {name!r}")
