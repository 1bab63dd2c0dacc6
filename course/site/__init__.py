"""The web site as static files: every chapter with its widgets alive, all algorithms, the reference.

`make site` builds it. Sphinx makes pages, search and navigation; ours is what is alive.
"""


def anchor(heading: str) -> str:
    """The name that JupyterLab gives a heading in a link."""
    return heading.replace(" ", "-")
