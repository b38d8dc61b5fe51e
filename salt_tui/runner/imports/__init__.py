"""Answers that another program gave to exported problems, as a run."""
