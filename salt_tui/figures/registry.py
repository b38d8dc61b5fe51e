"""The registry of figures: a new kind is a line here and a function that turns what was measured into a drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui.figures.comparison_figure import draw_compare
from salt_tui.figures.confidence_figures import (
    draw_densities,
    draw_euro,
    draw_reliability,
    draw_risk_coverage,
)
from salt_tui.figures.course_figures import draw_position, draw_prior
from salt_tui.figures.drawing import Drawing
from salt_tui.figures.errors import FigureError, UnknownFigureError
from salt_tui.figures.function_figure import draw_functions
from salt_tui.figures.heatmap_figure import draw_heatmap
from salt_tui.figures.intervention_figures import draw_interventions, draw_length
from salt_tui.figures.measured import FigureOptions, Measured
from salt_tui.figures.probe_figures import (
    draw_intrinsic_dimension,
    draw_probe_layers,
    draw_probe_maps,
    draw_sample_complexity,
)
from salt_tui.figures.rendering import ENDINGS, render, require_matplotlib
from salt_tui.figures.second_model_figure import draw_second_model
from salt_tui.measure.row_selection import MOST_DRAWS
from salt_tui.store.placing import complete_file, standing
from salt_tui.visible_text import visible
from scoring.probes import Progress, silent


@dataclass(frozen=True, slots=True)
class FigureKind:
    """One kind of figure.

    Attributes:
        name: on the command line.
        title: what it shows, in a few words.
        subject: what it is drawn from: ``run``, ``two runs`` or a kind of study.
        paper: the published figure that it follows; empty where there is none.
        draw: measures and says how it is drawn.
    """

    name: str
    title: str
    subject: str
    paper: str
    draw: Callable[[Measured], Drawing]


FIGURES: dict[str, FigureKind] = {
    kind.name: kind
    for kind in (
        FigureKind(
            "reliability", "is it right as often as it says, with counts and gaps", "run", "ACUTE 3", draw_reliability
        ),
        FigureKind("risk-coverage", "share of wrong ones among the surest", "run", "", draw_risk_coverage),
        FigureKind("euro", "what deciding by a confidence is worth, by risk", "run", "ACUTE 1", draw_euro),
        FigureKind("densities", "confidence of right and of wrong ones", "run", "SALT 44", draw_densities),
        FigureKind("position", "correctness and calibration along the answer", "run", "SALT 2, 29", draw_position),
        FigureKind("prior", "correctness by the share of right atoms before", "run", "SALT 3, 22", draw_prior),
        FigureKind("functions", "every confidence function by AUROC, ECE, Brier", "run", "SALT 7", draw_functions),
        FigureKind("heatmap", "answers × atoms: verdict and confidence", "run", "", draw_heatmap),
        FigureKind("compare", "what changed between two runs", "two runs", "SALT 6", draw_compare),
        FigureKind(
            "interventions", "what earlier atoms do to the next", "interventions", "SALT 4, 25", draw_interventions
        ),
        FigureKind("length", "what length does, at equal correctness", "interventions", "SALT 26, 27", draw_length),
        FigureKind("second-model", "where another model would go elsewhere", "second-model", "", draw_second_model),
        FigureKind("probe-layers", "which layer knows what is right", "activations", "ACUTE 6", draw_probe_layers),
        FigureKind(
            "sample-complexity", "how many answers a probe needs", "activations", "ACUTE 5", draw_sample_complexity
        ),
        FigureKind(
            "intrinsic-dimension", "directions a layer uses", "activations", "ACUTE 7", draw_intrinsic_dimension
        ),
        FigureKind("probe-maps", "calibration maps after probes", "activations", "ACUTE 8", draw_probe_maps),
    )
}
"""By name, in the order of lists."""

USUAL = FigureOptions()


def find_figure(name: str) -> FigureKind:
    """Return the kind of a name.

    Raises:
        UnknownFigureError: there is none.
    """
    if name not in FIGURES:
        raise UnknownFigureError(name, FIGURES, f"no figure {visible(name)!r}; there are {', '.join(FIGURES)}")
    return FIGURES[name]


def save_figure(
    kind: str,
    database: Path,
    run: str | Sequence[str],
    target: Path,
    options: FigureOptions = USUAL,
    progress: Progress = silent,
) -> None:
    """Draw a figure into a file, which is complete or not there; one that stands there is replaced.

    The same stored run gives the same bytes.

    Args:
        kind: a name of `FIGURES`.
        database: the file of the run.
        run: ``N``, ``N.K`` or ``latest``; two runs to compare, or several studies to measure together.
        target: ends in ``.png``, ``.svg`` or ``.pdf``.
        options: what it is about.
        progress: told what is computed next where that takes minutes.

    Raises:
        FigureError: unknown kind or ending, no such folder, matplotlib is missing, or nothing can be drawn; says why.
        StoreError: no such file or run.
        UsageError: what is to be measured cannot be.
    """
    chosen = find_figure(kind)
    ending = _checked_ending(target)
    if not 0 <= options.draws <= MOST_DRAWS:
        raise FigureError(f"--draws {options.draws}: a number from 0 (no intervals) to {MOST_DRAWS:,}")
    require_matplotlib()
    drawing = chosen.draw(
        Measured(database, (run,) if isinstance(run, str) else tuple(run), options, progress=progress)
    )
    content = render(drawing, ending)
    try:
        with complete_file(target, ("empty", "file"), database=False) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise FigureError(f"{visible(str(target))} cannot be written: {error.strerror or error}") from error


def _checked_ending(target: Path) -> str:
    """Return the format that a file's name asks for; refuses early what could not be written after minutes."""
    shown = visible(str(target))
    ending = target.suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        wanted = ", ".join(f".{one}" for one in ENDINGS)
        raise FigureError(f"-o {shown}: a figure's file ends in {wanted}")
    folder = target.parent
    try:
        if standing(folder) != "folder":
            raise FigureError(f"-o {shown}: there is no folder {visible(str(folder))}")
        if standing(target) in ("folder", "special"):
            raise FigureError(f"-o {shown}: it is no file")
    except OSError as error:
        raise FigureError(f"-o {shown}: {error.strerror or error}") from error
    return ending
