"""What the numbers of a run or study rest on, and how it is written down that they may differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

from salt_tui.runner.model_identity import ModelIdentity
from salt_tui.runner.plan import Environment, canonical_json, content_hash
from salt_tui.store.records import Work
from salt_tui.store.store import Store


@dataclass(frozen=True, slots=True)
class Provenance:
    """What the numbers rest on, as it is stored.

    Attributes:
        model: the files that the engine loaded.
        environment: how it computes.
        warnings: what the user was told.
    """

    model: ModelIdentity
    environment: Environment
    warnings: tuple[str, ...]

    def store_as_not_exact(self, store: Store, work: Work, reason: str) -> Provenance:
        """Write that numbers may differ from what they would have been, and return what rests on it now.

        Args:
            store: holds the run or study.
            work: it.
            reason: one line.
        """
        changed = replace(
            self,
            environment=replace(self.environment, exact=False),
            warnings=(*self.warnings, f"not exact: {reason}"),
        )
        text = canonical_json(changed.environment)
        store.update_environment(work, text, content_hash(text), False, changed.warnings)
        return changed
