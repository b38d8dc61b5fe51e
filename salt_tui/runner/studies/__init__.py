"""Further work on stored runs.  `registry` lists the kinds, each has a file of its own."""
