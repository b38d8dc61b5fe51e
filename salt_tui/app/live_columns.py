"""The units of a map as the columns that everything is measured from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.measure.running import RunningUnits
from salt_tui.store.results import UnitColumns
from scoring.answer_status import LEFT_OUT

_WITHOUT_UNITS = frozenset({"waiting", "prompt", "open", *LEFT_OUT})


def live_columns(answers: Sequence[AnswerCells], kind: str, function: str) -> RunningUnits:
    """Copy the units of the answers that count, whose thread may go on adding to them.

    Args:
        answers: of a map.
        kind: granularity, of those a map can show.
        function: the confidence function or signal.
    """
    counted = [answer for answer in answers if answer.status not in _WITHOUT_UNITS and len(answer.units[kind])]
    names = tuple(dict.fromkeys(answer.task for answer in counted))
    statuses, values, lines = [], [], []
    for answer in counted:
        cells = answer.units[kind]
        # The screen's thread may have added a unit between the reads.
        codes, known, places = bytes(cells.statuses), cells.copied(function), cells.lines[:]
        count = min(len(codes), len(known), len(places))
        statuses.append(np.frombuffer(codes[:count], dtype=np.uint8))
        values.append(known[:count])
        lines.append(np.array(places[:count], dtype=np.int64))
    counts = [part.size for part in statuses]

    def each(numbers: Sequence[int]) -> np.ndarray:
        return np.repeat(np.array(numbers, dtype=np.int64), counts)

    columns = UnitColumns(
        kind=kind,
        task_names=names,
        task=each([names.index(answer.task) for answer in counted]),
        generation=each([answer.generation for answer in counted]),
        position=each([answer.position for answer in counted]),
        index=np.concatenate([np.zeros(0, np.int64), *(np.arange(count) for count in counts)]),
        line=np.concatenate([np.zeros(0, np.int64), *lines]),
        status=np.concatenate([np.zeros(0, np.int64), *statuses]).astype(np.int64),
        confidences={function: np.concatenate([np.zeros(0), *values])},
    )
    return RunningUnits(columns, sum(answer.status in LEFT_OUT for answer in answers))
