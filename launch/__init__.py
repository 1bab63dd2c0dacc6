"""Ringside's launcher: notebook cells on many processes. `%load_ext launch`, then `%%ranks 4`.

Importing this package is cheap (the agent and every rank do it too); what a name needs is imported when it is used.
"""


def load_ipython_extension(shell):
    """`%load_ext launch`: registers the magics and starts the agent in the background. Returns at once."""
    from launch.magics import load

    load(shell)


def unload_ipython_extension(shell):
    """`%unload_ext launch`: ends the ranks and the agent."""
    from launch.magics import unload

    unload(shell)


def pull(name: str) -> list:
    """The variable `name` of every rank, as a list indexed by rank. RankError names the ranks that lack it."""
    from launch.magics import session

    return session().pull(name)


def push(**values) -> None:
    """Sets variables on every rank: `push(x=3, y=tensor)`. TypeError names what cannot travel."""
    from launch.magics import session

    session().push(**values)


def recording():
    """What the ranks sent in the last cell with --record or --watch: a Recording, which is a Schedule.

    After a check it is the run that was judged: the one that failed, or of a solved exercise the one on its first
    number of ranks.
    """
    from launch.magics import session

    return session().recording()


def __getattr__(name: str):
    if name in ("RankError", "DeadlockError", "LaunchError", "UsageError"):
        from launch import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'launch' has no attribute {name!r}")
