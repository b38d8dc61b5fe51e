"""Rows of a model whose answers depend on its prefix by a known rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.interventions import InterventionRow


@dataclass(frozen=True, slots=True)
class Rule:
    """The chance of a right atom: ``floor + fall·exp(−(length − 10)/scale)``, a constant of the problem, both effects.

    It stays inside [0, 1] whatever is edited, so that the effects are what is measured.
    """

    floor: float
    fall: float
    scale: float
    global_effect: float
    local_effect: float


EDITS = Rule(floor=0.42, fall=0.17, scale=12.0, global_effect=0.4, local_effect=0.2)
LENGTH = Rule(floor=0.2, fall=0.6, scale=12.0, global_effect=0.1, local_effect=0.05)


def simulated_rows(
    seed: int,
    rule: Rule = EDITS,
    problems: int = 40,
    targets: int = 8,
    variants: int = 8,
    models: int = 1,
    *,
    certain: bool = False,
) -> list[InterventionRow]:
    """Draw rows; with ``certain`` the outcome is the chance itself, in `probability`."""
    random = np.random.default_rng(seed)
    rows = []
    for model in range(models):
        for problem in range(problems):
            ease = random.uniform(-0.03, 0.03)
            for target in random.choice(np.arange(11, 90), targets, replace=False).tolist():
                length = target - 1
                right = int(random.integers(round(0.4 * length), round(0.6 * length) + 1))
                near = int(np.clip(random.binomial(10, right / length), max(3, right - (length - 10)), min(7, right)))
                level = rule.floor + rule.fall * np.exp(-(length - 10) / rule.scale) + ease
                for variant in range(variants + 1):
                    inside, outside = 0, 0
                    if variant:
                        side = 1 if random.random() < 0.5 else -1
                        room = (10 - near, length - 10 - (right - near)) if side > 0 else (near, right - near)
                        share = random.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=2)
                        inside, outside = (side * round(part * space) for part, space in zip(share, room, strict=True))
                    near_dose, dose = inside / 10, (inside + outside) / length
                    chance = float(level + rule.global_effect * dose + rule.local_effect * near_dose)
                    rows.append(
                        InterventionRow(
                            model=f"m{model}",
                            problem=f"s{problem}",
                            target=target,
                            baseline=variant == 0,
                            treatment_global=dose,
                            treatment_local=near_dose,
                            correct_before=right / length,
                            correct_before_local=near / 10,
                            outcome=int(random.random() < chance),
                            probability=chance if certain else None,
                        )
                    )
    return rows
