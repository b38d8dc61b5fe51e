"""Renaming and deleting branches, which people make one by one."""

from __future__ import annotations

from salt_tui.store.errors import StoreError
from salt_tui.store.records import Work
from salt_tui.store.writer import Writer


class BranchWriter(Writer):
    """Branches after they were computed."""

    def rename_branch(self, study: Work, generation: int, name: str) -> None:
        """Give an edited branch another name.

        Raises:
            StoreError: another branch of the study has it, there is no such branch, or the study is being computed.
        """
        with self._transaction() as connection:
            self._refuse_missing_or_live(study)
            taken = connection.execute(
                "SELECT 1 FROM intervention WHERE study = ? AND variant = ? AND generation <> ?",
                (study.study, name, generation),
            ).fetchone()
            if taken is not None:
                raise StoreError(f"{study.title} has a branch {name!r} already")
            changed = connection.execute(
                "UPDATE intervention SET variant = ? WHERE study = ? AND generation = ? AND edits <> '[]'",
                (name, study.study, generation),
            ).rowcount
            if not changed:
                raise StoreError(f"{study.title} in {self.path} has no branch {generation}")

    def delete_branch(self, study: Work, generation: int) -> None:
        """Delete a branch and those that fork from it, with their tokens and units.

        Raises:
            StoreError: there is no such branch, or the study is being computed.
        """
        with self._transaction() as connection:
            self._refuse_missing_or_live(study)
            removed = connection.execute(
                "DELETE FROM generation WHERE id = ? AND study = ? AND role = 'branch'", (generation, study.study)
            ).rowcount
            if not removed:
                raise StoreError(f"{study.title} in {self.path} has no branch {generation}")

    def forget_unfinished(self, study: Work) -> None:
        """Forget the generations of a claimed study that were begun and not ended: nobody will go on with them.

        Raises:
            StoreError: the study is not held.
        """
        self._held(study)
        with self._transaction() as connection:
            connection.execute("DELETE FROM generation WHERE study = ? AND stop_reason IS NULL", (study.study,))
