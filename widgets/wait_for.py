"""Who waits for whom: the picture beside a deadlock's explanation.

Ranks stand on a circle, rank 0 at the top, clockwise; an arrow leads from a rank to the one it waits for. Ranks that
wait are filled, ranks that are not coming any more are outlined, so that colour is not needed to tell them apart. It is
a still picture: the same bytes on every run, readable without a kernel, in a file, on paper.

Left out: more ranks than can be drawn as circles; the sentence of the error names them all.
"""

from __future__ import annotations

import base64
import math
from html import escape

SIZE, RING, BALL = 320, 112, 17  # pixels: the picture, the circle the ranks stand on, a rank
MOST_RANKS = 32
MOST_ARROWS = 200


class WaitFor:
    """`edges` are (rank, other rank, in which call): rank waits for other. `ranks` is how many there are in all."""

    def __init__(self, edges, ranks: int):
        self.edges, self.ranks = tuple(tuple(edge) for edge in edges), ranks
        for rank, other, _ in self.edges:
            if not (0 <= rank < ranks and 0 <= other < ranks):
                raise ValueError(f"rank {max(rank, other)}: there are ranks 0 to {ranks - 1} in this picture")

    def __repr__(self) -> str:
        return f"WaitFor(ranks={self.ranks}, waiting={len({rank for rank, _, _ in self.edges})})"

    def _repr_html_(self) -> str:
        if self.ranks > MOST_RANKS:
            return f"<span>{escape(self.text())}</span>"
        picture = base64.b64encode(self.svg().encode()).decode()
        return f'<img alt="{escape(self.text(), quote=True)}" src="data:image/svg+xml;base64,{picture}">'

    def text(self) -> str:
        """The picture in words, for who cannot see it: 'rank 0 waits for rank 2; rank 1 waits for ranks 2, 3'."""
        clauses = []
        for rank in sorted({rank for rank, _, _ in self.edges}):
            others = [str(other) for waiting, other, _ in self.edges if waiting == rank]
            clauses.append(f"rank {rank} waits for rank{'s' if len(others) > 1 else ''} {', '.join(others)}")
        return "; ".join(clauses)

    def svg(self) -> str:
        waiting = {rank for rank, _, _ in self.edges}
        others = {other for _, other, _ in self.edges} - waiting
        scale = min(1.0, 12 / self.ranks)  # smaller balls for many ranks
        arrows = [self._arrow(rank, other, call, scale) for rank, other, call in self.edges[:MOST_ARROWS]]
        balls = [self._ball(rank, rank in waiting, rank in others, scale) for rank in range(self.ranks)]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}" '
            f'font-family="sans-serif" role="img"><title>{escape(self.text())}</title>'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>'
            f'<rect width="{SIZE}" height="{SIZE}" fill="#fff"/>{"".join(arrows)}{"".join(balls)}</svg>'
        )

    def _place(self, rank: int) -> tuple[float, float]:
        turn = 2 * math.pi * rank / self.ranks
        return SIZE / 2 + RING * math.sin(turn), SIZE / 2 - RING * math.cos(turn)

    def _arrow(self, rank: int, other: int, call: str, scale: float) -> str:
        """Bent a little to the left, so that two ranks that wait for each other show two arrows."""
        (x, y), (u, v) = self._place(rank), self._place(other)
        length = math.hypot(u - x, v - y) or 1
        along, gap = ((u - x) / length, (v - y) / length), BALL * scale + 3
        bend = 0.12 * length
        middle = ((x + u) / 2 + along[1] * bend, (y + v) / 2 - along[0] * bend)
        path = (
            f"M{x + along[0] * gap:.1f} {y + along[1] * gap:.1f}Q{middle[0]:.1f} {middle[1]:.1f} "
            f"{u - along[0] * gap:.1f} {v - along[1] * gap:.1f}"
        )
        title = escape(f"rank {rank} waits for rank {other}: {call}")
        line = f'<path d="{path}" fill="none" stroke="#555" stroke-width="1.6" marker-end="url(#tip)">'
        return f"{line}<title>{title}</title></path>"

    def _ball(self, rank: int, waits: bool, missing: bool, scale: float) -> str:
        x, y = self._place(rank)
        fill, ink, edge = (
            ("#0072b2", "#fff", "#0072b2") if waits else ("#fff", "#000", "#d55e00" if missing else "#999")
        )
        dash = ' stroke-dasharray="4 3"' if missing else ""
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{BALL * scale:.1f}" fill="{fill}" stroke="{edge}"'
        text = f'<text x="{x:.1f}" y="{y + 5 * scale:.1f}" font-size="{14 * scale:.1f}" text-anchor="middle"'
        return f'{circle} stroke-width="2.5"{dash}/>{text} fill="{ink}">{rank}</text>'
