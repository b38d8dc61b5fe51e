"""Problems whose long answer has exactly one known truth (SALT section 4).

This package knows nothing of models, databases or screens.  ``tasks.registry.TASKS`` maps a name to its task;
``tasks.task`` holds the interface; ``tasks.answer`` finds and splits the answer inside a reply.
"""
