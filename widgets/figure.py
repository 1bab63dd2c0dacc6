"""A plotly Figure that can also be read where no plotly runs: its repr and text/html say in sentences what it shows,
below a picture that stands still (_curves.py).

JupyterLab draws the figure with the extension that plotly ships, without a network; a code host, nbconvert and a
terminal show the sentences. Only modules that draw import this one, when they draw: plotly takes its time to load.

Left out: the drawing itself (cost_explorer.py).
"""

from html import escape

import plotly.graph_objects as go

from widgets import _curves, _still
from widgets._still import INK

CLEAR = "rgba(0, 0, 0, 0)"
AXIS = {"gridcolor": "rgba(120, 120, 120, 0.3)", "linecolor": INK, "zeroline": False}
ON_THE_PAGE = {
    "layout": {"paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR, "font": {"color": INK}, "xaxis": AXIS, "yaxis": AXIS}
}
"""A template for plotly: the page is the paper, light or dark, and what stands on it a grey that reads on both."""


class Figure(go.Figure):
    """A go.Figure whose `layout.meta` is {"name": what its repr calls it, "sentences": [...]}."""

    _ipython_display_ = None  # plotly's shows the drawing alone; IPython then asks for the mimebundle below

    def __repr__(self) -> str:
        return self.layout.meta["name"]

    def fallback(self) -> str:
        """What is read where no plotly runs, as every widget has it."""
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.layout.meta["sentences"])
        title = self.layout.title.text
        picture = _still.image(_curves.svg(self), f"{title} {' '.join(self.layout.meta['sentences'])}")
        return f"<p><b>{escape(title)}</b></p>{picture}<ul>{sentences}</ul>"

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        plotlys = super()._repr_mimebundle_(include, exclude, **kwargs)
        return {"text/plain": repr(self), "text/html": self.fallback(), **plotlys}
