"""A drawing as PNG, SVG or PDF: the same drawing gives the same bytes, and no text is ever read as mathematics."""

from __future__ import annotations

import contextlib
import io
import logging
import textwrap
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from salt_tui.figures.drawing import INK, SMALL, WIDTH, Drawing
from salt_tui.figures.errors import FigureError
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = ("png", "svg", "pdf")
DOTS_PER_INCH = 200
LETTERS_A_LINE = 130
"""Of the smallest letters across a figure: of English in DejaVu Sans at 6.5 points about 138 fit."""

TITLE_LETTERS = 88
_LINE = 0.128
"""Inches of one line of the smallest letters."""

_SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters on every machine
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#444444",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.parse_math": False,  # a `$` in the name of a model is a `$`
    "text.usetex": False,
    "pdf.fonttype": 42,  # whole TrueType fonts, which journals ask for, not type 3
    "svg.fonttype": "none",  # letters stay letters: they can be searched and copied
    "svg.hashsalt": "salt-tui",  # otherwise ids are drawn at random
    "savefig.dpi": DOTS_PER_INCH,
    "figure.facecolor": "white",
}

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


def require_matplotlib() -> None:
    """Load matplotlib, quietly.

    Raises:
        FigureError: it is not installed; the message names the extra that brings it.
    """
    # It reports a font cache that it builds, and settings folders that it may not write, on stderr.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib.figure
        import matplotlib.style  # noqa: F401
    except ImportError as error:
        raise FigureError("figures need matplotlib: pip install 'saltbench-tui[plots]'") from error


def render(drawing: Drawing, ending: str) -> bytes:
    """Return a drawing with its words as a file of one of `ENDINGS`; holds no date.

    Raises:
        FigureError: matplotlib is not installed.
    """
    title = textwrap.wrap(visible(drawing.title), TITLE_LETTERS)
    notes = [line for note in drawing.notes for line in textwrap.wrap(visible(note), LETTERS_A_LINE)]
    top, bottom = 0.19 * len(title) + 0.06, _LINE * len(notes) + 0.1
    with _drawn(drawing, top, bottom) as (figure, height):
        for number, line in enumerate(title):
            figure.text(
                0.01, 1 - (0.17 + 0.19 * number) / height, line, fontsize=9, fontweight="bold", color=INK, va="baseline"
            )
        for number, line in enumerate(notes):
            place = (bottom - 0.06 - _LINE * (number + 0.75)) / height
            figure.text(0.01, place, line, fontsize=SMALL, color="#333333", va="baseline")
        return _saved(figure, ending, visible(drawing.title))


def render_inline(drawing: Drawing, prefix: str) -> str:
    """Return the axes of a drawing as one ``<svg>`` element for a page that says title and notes itself.

    Args:
        drawing: the figure.
        prefix: of every id, unique in the page.

    Raises:
        FigureError: matplotlib is not installed.
    """
    with _drawn(drawing, 0.04, 0.04) as (figure, _):
        root = ElementTree.fromstring(_saved(figure, "svg", ""))
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                element.set(name, f"{prefix}-{value}")
            elif name == f"{{{_XLINK}}}href" and value.startswith("#"):
                element.set(name, f"#{prefix}-{value[1:]}")
            elif "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{prefix}-"))
    root.set("role", "img")
    root.set("aria-label", visible(drawing.title))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


@contextlib.contextmanager
def _drawn(drawing: Drawing, top: float, bottom: float) -> Iterator[tuple[Figure, float]]:
    """Give the figure with its axes filled and room above and below them, in inches, and its height."""
    require_matplotlib()
    import matplotlib.style
    from matplotlib.figure import Figure

    height = drawing.height + top + bottom
    # The user's own settings must not change a figure; a letter that the font lacks is drawn as a box without a word.
    with matplotlib.style.context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        engine: Any = figure.get_layout_engine()
        engine.set(
            rect=(0.005, bottom / height, 0.99, drawing.height / height),
            w_pad=0.03,
            h_pad=0.03,
            wspace=0.03,
            hspace=0.04,
        )
        drawing.fill(figure)
        _place(figure)
        yield figure, height


def _place(figure: Figure) -> None:
    """Let the layout find its places, once, and round them: its solver differs in the last bits from call to call."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(value, 6) for value in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def _saved(figure: Figure, ending: str, title: str) -> bytes:
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Title": title},
        "pdf": {"CreationDate": None, "Title": title},
        "png": {"Title": title},
    }
    stream = io.BytesIO()
    figure.savefig(stream, format=ending, metadata=metadata[ending])
    return stream.getvalue()
