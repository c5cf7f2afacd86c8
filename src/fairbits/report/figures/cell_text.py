"""Many short words in the middle of cells, drawn as one artist: a text object each would cost more than the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes as Frame
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

#: Digits are about so high, as a share of the letters' size: their middle is the middle of the cell.
_HEIGHT = 0.73


class Numbers(Artist):
    """(x, y, word, colour) in the frame's data coordinates, each centred on its place."""

    def __init__(self, ax: Frame, words: Sequence[tuple[float, float, str, str]], *, size: float = 10):
        super().__init__()
        self._words, self._size = words, size
        # Formats that can align text by themselves ask this one where and how; it is moved from word to word.
        self._anchor = Text(ha="center", parse_math=False, fontsize=size)
        self._anchor.set_transform(ax.transData)
        self.set_zorder(3)
        ax.add_artist(self)
        self._places = ax.transData

    def draw(self, renderer: Any) -> None:
        """Draw every word."""
        if not self._words:  # whole vectors are compared: no cell has a class by its score
            return
        prop = FontProperties(family=["DejaVu Sans"], size=self._size)
        up = renderer.points_to_pixels(self._size) * _HEIGHT / 2
        flip = renderer.flipy()
        widths: dict[str, float] = {}
        pen = renderer.new_gc()
        for (x, y), (left, bottom, word, colour) in zip(
            self._places.transform([(x, y) for x, y, *_ in self._words]), self._words, strict=True
        ):
            if word not in widths:
                widths[word] = renderer.get_text_width_height_descent(word, prop, False)[0]
            pen.set_foreground(colour)
            self._anchor.set_position((left, bottom))
            high = renderer.height - y + up if flip else y - up
            renderer.draw_text(pen, x - widths[word] / 2, high, word, prop, 0, ismath=False, mtext=self._anchor)
        pen.restore()
        self.stale = False
