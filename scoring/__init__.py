"""Labels, confidence functions, calibration maps, metrics, intervals and analyses.

Nothing here knows a task, an engine or a database: every function takes plain strings, numbers and arrays.
What the live screen needs is numpy alone.
"""
