"""Questions about branches: answers gone on with after an edit, and the edits of edits."""

from __future__ import annotations

from salt_tui.store.reader import Reader
from salt_tui.store.records import InterventionRecord, Work
from salt_tui.store.results import EditedBranch
from salt_tui.store.rows import INTERVENTION_COLUMNS, intervention_record


class BranchQueries(Reader):
    """Branches with their designs, in rows and as a tree."""

    def interventions(self, study: Work) -> list[InterventionRecord]:
        """Return the branches of a study, ordered by answer, target and branch."""
        place = self._place(study.title)
        rows = self._rows(
            f"SELECT {INTERVENTION_COLUMNS} FROM intervention WHERE study = ? ORDER BY answer, target, generation",
            (study.study,),
        )
        return [intervention_record(row, place) for row in rows]

    def edited_branches(self, study: Work) -> list[EditedBranch]:
        """Return the branches of a study in which something is changed, each followed by those that fork from it.

        Answers come in the order of the plan, branches of one text in the order in which they were made.
        """
        links = {
            generation: (parent, number)
            for generation, parent, number in self._rows(
                "SELECT id, parent, number FROM generation WHERE study = ? AND role = 'branch'", (study.study,)
            )
        }
        records = sorted(self.interventions(study), key=lambda record: record.generation)
        unchanged = {
            (links[record.generation][0], record.target): record.log_probability_reference
            for record in records
            if not record.edits
        }
        names = {record.generation: record.variant for record in records if record.edits}
        children: dict[int, list[InterventionRecord]] = {}
        for record in records:
            if record.edits:
                children.setdefault(links[record.generation][0] or record.answer, []).append(record)

        answers = self._rows(
            "SELECT generation.id FROM problem JOIN generation ON generation.problem = problem.id AND study IS NULL"
            " WHERE problem.run = ? ORDER BY problem.id",
            (study.run,),
        )
        found: list[EditedBranch] = []
        waiting = [
            (record, answer, 0) for (answer,) in reversed(answers) for record in reversed(children.get(answer, []))
        ]
        while waiting:
            record, parent, depth = waiting.pop()
            found.append(
                EditedBranch(
                    record=record,
                    parent=parent,
                    parent_name=names.get(parent),
                    depth=depth,
                    unchanged_log_probability=unchanged.get((parent, record.target)),
                )
            )
            below = reversed(children.get(record.generation, []))
            waiting.extend((child, record.generation, depth + 1) for child in below)
        return found

    def find_branch(self, generation: int) -> EditedBranch | None:
        """Return an edited branch by its generation; None for everything else."""
        rows = self._rows(
            "SELECT study.run, study.id, study.number FROM generation JOIN study ON study.id = generation.study"
            " WHERE generation.id = ? AND role = 'branch' AND state <> 'deleted'",
            (generation,),
        )
        for row in rows:
            for branch in self.edited_branches(Work(*row)):
                if branch.record.generation == generation:
                    return branch
        return None
