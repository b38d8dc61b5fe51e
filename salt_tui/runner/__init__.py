"""Plan, compute, resume.  The only place where tasks, scoring, engine and store meet."""
