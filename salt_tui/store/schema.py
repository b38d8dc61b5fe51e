"""The tables, views and indices of version 1, and the names and enumerations that the rest of the store shares.

The first migration executes the text below.  Until the first release the text may change: a file remembers its hash,
and files of another text are refused.  After the release a change is a new migration.  ``docs/database.md`` describes
every column for people.
"""

from __future__ import annotations

import hashlib

APPLICATION_ID = 0x53414C54
"""The bytes ``SALT`` in the file's header (offset 68), by which a database of something else is recognised."""


CONFIDENCE_COLUMNS: tuple[str, ...] = (
    "perplexity",
    "log_perplexity",
    "mean_probability",
    "median_probability",
    "max_probability",
    "logprob_sum",
    "mean_entropy",
    "max_entropy",
    "joint_probability",
)
"""One column of ``unit`` per confidence function, in the order of `UnitRecord.confidences`."""

UNDEFINED_BY_STATISTICS: dict[str, dict[str, str]] = {
    "vocabulary": {},
    "top_k": dict.fromkeys(("mean_entropy", "max_entropy"), "top-k only"),
    "none": dict.fromkeys(CONFIDENCE_COLUMNS, "no log-probabilities"),
}
"""By the statistics of a run the confidence functions that none of its units has, and why."""

TOKEN_SIGNALS: tuple[str, ...] = ("min_probability", "mean_margin", "mean_rank", "first_token_probability")
"""Signals that `salt_tui.store.token_signals` computes from the stored tokens of every run."""

ENTROPY_BOUND = "entropy_lower_bound"
"""The same for runs whose engine lists the most probable tokens only, with probabilities before any sampler."""

COMPUTED_SIGNALS: tuple[str, ...] = (*TOKEN_SIGNALS, ENTROPY_BOUND)
"""No signal of another origin may be called so."""

VOID_UNIT = "the answer was scored again and has another unit here"
"""The reason of a signal that lost its value because the unit it was about is another one now."""

UNIT_STATUSES: tuple[str, ...] = ("correct", "wrong", "missing", "redundant", "abstained")
STATUS_CODE = f"CASE status {' '.join(f'WHEN {name!r} THEN {code}' for code, name in enumerate(UNIT_STATUSES))} END"
"""SQL: the place of a unit's status in `UNIT_STATUSES`."""

ANSWER_STATUSES: tuple[str, ...] = (
    "failed",
    "cancelled",
    "context_full",
    "truncated",
    "no_answer",
    "unclosed",
    "complete",
)
"""Of an answer, in order of precedence."""

LEFT_OUT_STATUSES: tuple[str, ...] = ("failed", "cancelled", "context_full")
"""Answers that are counted but left out of every metric."""

TABLES = """
CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE CHECK (identity <> ''),
    sha256 TEXT UNIQUE CHECK (length(sha256) = 64),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    file_bytes INTEGER CHECK (file_bytes >= 0),
    description TEXT NOT NULL,
    architecture TEXT,
    quantisation TEXT,
    parameters INTEGER CHECK (parameters >= 0),
    vocabulary_size INTEGER CHECK (vocabulary_size > 0),
    trained_context INTEGER CHECK (trained_context >= 0)
) STRICT;

CREATE TABLE vocabulary (
    model INTEGER NOT NULL REFERENCES model (id) ON DELETE CASCADE,
    id INTEGER NOT NULL CHECK (id >= 0),
    bytes BLOB NOT NULL,
    PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model INTEGER NOT NULL REFERENCES model (id),
    model_name TEXT NOT NULL,
    model_path TEXT NOT NULL,
    model_entry TEXT NOT NULL CHECK (json_valid(model_entry)),
    template TEXT,
    plan TEXT NOT NULL CHECK (json_valid(plan)),
    plan_hash TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (json_valid(environment)),
    environment_hash TEXT NOT NULL,
    exact INTEGER CHECK (exact IN (0, 1)),
    statistics TEXT NOT NULL CHECK (statistics IN ('vocabulary', 'top_k', 'none')),
    warnings TEXT NOT NULL CHECK (json_valid(warnings)),
    note TEXT,
    studies INTEGER NOT NULL DEFAULT 0 CHECK (studies >= 0),
    state TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'failed', 'finished', 'deleted')),
    message TEXT,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    lease_pid INTEGER,
    lease_host TEXT,
    lease_namespace TEXT,
    lease_process_start TEXT,
    lease_heartbeat TEXT,
    fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
    CHECK ((lease_pid IS NULL) = (lease_host IS NULL)),
    CHECK ((lease_pid IS NULL) = (lease_heartbeat IS NULL))
) STRICT;
CREATE INDEX run_model ON run (model);

CREATE TABLE study (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number >= 1),
    kind TEXT NOT NULL CHECK (kind IN
        ('samples', 'verbalised', 'interventions', 'activations', 'second-model', 'combine', 'manual')),
    model INTEGER NOT NULL REFERENCES model (id),
    model_name TEXT NOT NULL,
    model_path TEXT NOT NULL,
    model_entry TEXT NOT NULL CHECK (json_valid(model_entry)),
    template TEXT,
    plan TEXT NOT NULL CHECK (json_valid(plan)),
    plan_hash TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (json_valid(environment)),
    environment_hash TEXT NOT NULL,
    exact INTEGER CHECK (exact IN (0, 1)),
    statistics TEXT NOT NULL CHECK (statistics IN ('vocabulary', 'top_k', 'none')),
    warnings TEXT NOT NULL CHECK (json_valid(warnings)),
    state TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'failed', 'finished', 'deleted')),
    message TEXT,
    created_at TEXT NOT NULL,
    finished_at TEXT,
    lease_pid INTEGER,
    lease_host TEXT,
    lease_namespace TEXT,
    lease_process_start TEXT,
    lease_heartbeat TEXT,
    fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    UNIQUE (run, number),
    CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
    CHECK ((lease_pid IS NULL) = (lease_host IS NULL)),
    CHECK ((lease_pid IS NULL) = (lease_heartbeat IS NULL))
) STRICT;
CREATE INDEX study_model ON study (model);

CREATE TABLE problem (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    task TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),
    content_id TEXT NOT NULL,
    difficulty TEXT NOT NULL,
    seed TEXT NOT NULL CHECK (seed NOT GLOB '*[^0-9]*' AND seed <> ''),
    method TEXT NOT NULL,
    text TEXT NOT NULL,
    reference TEXT NOT NULL,
    reference_atoms INTEGER NOT NULL CHECK (reference_atoms >= 0),
    reference_lines INTEGER NOT NULL CHECK (reference_lines >= 0),
    answer_kind TEXT NOT NULL CHECK (answer_kind IN
        ('generated', 'choice', 'json', 'numbers', 'words', 'lines', 'text')),
    choices TEXT CHECK (choices IS NULL OR json_valid(choices)),
    slices TEXT CHECK (slices IS NULL OR json_valid(slices)),
    messages TEXT CHECK (messages IS NULL OR json_valid(messages)),
    UNIQUE (run, task, position),
    UNIQUE (run, task, content_id)
) STRICT;

CREATE TABLE generation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    problem INTEGER NOT NULL REFERENCES problem (id) ON DELETE CASCADE,
    study INTEGER REFERENCES study (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('answer', 'sample', 'branch', 'question', 'walk')),
    parent INTEGER REFERENCES generation (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number >= 0),
    fence INTEGER NOT NULL CHECK (fence >= 1),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    prompt_tokens TEXT CHECK (prompt_tokens IS NULL OR json_valid(prompt_tokens)),
    preamble INTEGER NOT NULL CHECK (preamble >= 0),
    reply BLOB,
    stop_reason TEXT CHECK (stop_reason IN ('end', 'length', 'done', 'context', 'cancelled', 'failed')),
    extraction TEXT CHECK (extraction IN ('fenced', 'unclosed', 'none', 'thinking_only')),
    answer_status TEXT CHECK (answer_status IN
        ('failed', 'cancelled', 'context_full', 'truncated', 'no_answer', 'unclosed', 'complete')),
    error TEXT,
    prompt_seconds REAL CHECK (prompt_seconds >= 0),
    decode_seconds REAL CHECK (decode_seconds >= 0),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    CHECK ((role = 'answer') = (study IS NULL)),
    CHECK (role <> 'answer' OR (parent IS NULL AND number = 0)),
    CHECK ((stop_reason IS NULL) = (reply IS NULL)),
    CHECK ((stop_reason IS NULL) = (ended_at IS NULL)),
    CHECK ((extraction IS NULL) = (answer_status IS NULL)),
    CHECK (stop_reason IS NOT NULL OR answer_status IS NULL),
    CHECK (stop_reason IS NULL OR answer_status IS NOT NULL OR role IN ('question', 'walk'))
) STRICT;
CREATE UNIQUE INDEX generation_answer ON generation (problem) WHERE study IS NULL;
CREATE UNIQUE INDEX generation_of_study ON generation (study, problem, coalesce(parent, 0), role, number)
    WHERE study IS NOT NULL;
CREATE INDEX generation_problem ON generation (problem);
CREATE INDEX generation_parent ON generation (parent) WHERE parent IS NOT NULL;

CREATE TABLE token (
    generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
    position INTEGER NOT NULL CHECK (position >= 0),
    id INTEGER CHECK (id >= 0),
    bytes BLOB,
    byte_start INTEGER NOT NULL CHECK (byte_start >= 0),
    byte_end INTEGER NOT NULL CHECK (byte_end >= byte_start),
    log_probability REAL CHECK (log_probability <= 0),
    entropy REAL CHECK (entropy >= 0),
    alternatives TEXT NOT NULL,
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
    PRIMARY KEY (generation, position),
    CHECK (id IS NOT NULL OR bytes IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE unit (
    generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('atom', 'line', 'generation')),
    "index" INTEGER NOT NULL CHECK ("index" >= 0),
    line INTEGER CHECK (line >= 0),
    text TEXT,
    reference TEXT,
    status TEXT NOT NULL CHECK (status IN ('correct', 'wrong', 'missing', 'redundant', 'abstained')),
    token_start INTEGER CHECK (token_start >= 0),
    token_end INTEGER CHECK (token_end >= token_start),
    byte_start INTEGER CHECK (byte_start >= 0),
    byte_end INTEGER CHECK (byte_end >= byte_start),
    perplexity REAL CHECK (perplexity >= 1),
    log_perplexity REAL CHECK (log_perplexity >= 0),
    mean_probability REAL CHECK (mean_probability BETWEEN 0 AND 1),
    median_probability REAL CHECK (median_probability BETWEEN 0 AND 1),
    max_probability REAL CHECK (max_probability BETWEEN 0 AND 1),
    logprob_sum REAL CHECK (logprob_sum <= 0),
    mean_entropy REAL CHECK (mean_entropy >= 0),
    max_entropy REAL CHECK (max_entropy >= 0),
    joint_probability REAL CHECK (joint_probability BETWEEN 0 AND 1),
    PRIMARY KEY (generation, kind, "index"),
    CHECK ((status = 'missing') = (text IS NULL)),
    CHECK (status <> 'redundant' OR reference IS NULL),
    CHECK (reference IS NOT NULL OR status IN ('redundant', 'abstained')),
    CHECK ((token_start IS NULL) = (token_end IS NULL)),
    CHECK ((byte_start IS NULL) = (byte_end IS NULL)),
    CHECK (text IS NOT NULL OR (byte_start IS NULL AND token_start IS NULL AND max_probability IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX unit_atom_status ON unit (generation, status, max_probability) WHERE kind = 'atom';

CREATE TABLE signal (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    study INTEGER REFERENCES study (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('token', 'atom', 'line', 'generation')),
    "index" INTEGER NOT NULL CHECK ("index" >= 0),
    name TEXT NOT NULL CHECK (name <> ''),
    value REAL,
    reason TEXT,
    CHECK (value IS NOT NULL OR reason IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX signal_identity ON signal (run, coalesce(study, 0), name, kind, generation, "index");
CREATE INDEX signal_study ON signal (study) WHERE study IS NOT NULL;
CREATE INDEX signal_generation ON signal (generation);

CREATE TABLE foreign_signal (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    name TEXT NOT NULL CHECK (name <> ''),
    lower_is_confident INTEGER NOT NULL CHECK (lower_is_confident IN (0, 1)),
    added_at TEXT NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE activation (
    id INTEGER PRIMARY KEY,
    study INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('token', 'atom', 'line', 'generation')),
    "index" INTEGER NOT NULL CHECK ("index" >= 0),
    layer INTEGER NOT NULL CHECK (layer >= 0),
    positions TEXT NOT NULL CHECK (positions IN ('producing', 'own')),
    scale REAL NOT NULL CHECK (scale > 0),
    vector BLOB NOT NULL CHECK (length(vector) > 0 AND length(vector) % 2 = 0),
    UNIQUE (study, kind, layer, positions, generation, "index")
) STRICT;
CREATE INDEX activation_generation ON activation (generation);

CREATE TABLE intervention (
    generation INTEGER PRIMARY KEY REFERENCES generation (id) ON DELETE CASCADE,
    study INTEGER NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    answer INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
    target INTEGER NOT NULL CHECK (target >= 0),
    variant TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('baseline', 'correction', 'corruption', 'mixed')),
    edits TEXT NOT NULL CHECK (json_valid(edits)),
    treatment_global REAL CHECK (treatment_global BETWEEN -1 AND 1),
    treatment_local REAL CHECK (treatment_local BETWEEN -1 AND 1),
    length INTEGER NOT NULL CHECK (length >= 0),
    correct_before REAL CHECK (correct_before BETWEEN 0 AND 1),
    correct_before_local REAL CHECK (correct_before_local BETWEEN 0 AND 1),
    outcome INTEGER CHECK (outcome IN (0, 1)),
    log_probability_reference REAL CHECK (log_probability_reference <= 0),
    reason TEXT,
    CHECK ((direction = 'baseline') = (edits = '[]')),
    CHECK (outcome IS NOT NULL OR reason IS NOT NULL)
) STRICT;
CREATE INDEX intervention_study ON intervention (study);
CREATE INDEX intervention_answer ON intervention (answer, target);
"""

VIEWS = """
CREATE VIEW atom_view AS
SELECT
    run.id AS run, run.model_name AS model, problem.task, problem.position, problem.content_id, problem.difficulty,
    problem.method, generation.id AS generation, generation.answer_status,
    unit."index", unit.line, unit.text, unit.reference, unit.status,
    CASE WHEN unit.status <> 'missing' THEN unit.status = 'correct' END AS correct,
    unit.perplexity, unit.log_perplexity, unit.mean_probability, unit.median_probability, unit.max_probability,
    unit.logprob_sum, unit.mean_entropy, unit.max_entropy, unit.joint_probability,
    unit.token_start, unit.token_end, unit.byte_start, unit.byte_end, run.statistics
FROM run
JOIN problem ON problem.run = run.id
JOIN generation ON generation.problem = problem.id AND generation.study IS NULL
JOIN unit ON unit.generation = generation.id AND unit.kind = 'atom'
WHERE run.state <> 'deleted';

CREATE VIEW reliability_view AS
WITH binned AS (
    SELECT
        problem.run, problem.task, unit.max_probability AS confidence, unit.status = 'correct' AS correct,
        max(1, CAST(unit.max_probability * 15 AS INTEGER)
            + (unit.max_probability > CAST(unit.max_probability * 15 AS INTEGER) / 15.0)) AS bin
    FROM run
    JOIN problem ON problem.run = run.id
    JOIN generation ON generation.problem = problem.id AND generation.study IS NULL
    JOIN unit ON unit.generation = generation.id AND unit.kind = 'atom'
    WHERE run.state <> 'deleted' AND generation.answer_status NOT IN ('failed', 'cancelled', 'context_full')
        AND unit.status IN ('correct', 'wrong', 'redundant') AND unit.max_probability IS NOT NULL
)
SELECT
    run, task, bin, (bin - 1) / 15.0 AS lower, bin / 15.0 AS upper, count(*) AS atoms,
    avg(confidence) AS mean_confidence, avg(correct) AS accuracy, avg(confidence) - avg(correct) AS gap
FROM binned
GROUP BY run, task, bin;

CREATE VIEW run_summary AS
WITH answer AS (
    SELECT
        problem.run, problem.task, problem.difficulty, problem.method, problem.reference_atoms,
        generation.id, generation.stop_reason IS NOT NULL AS done,
        coalesce(generation.answer_status NOT IN ('failed', 'cancelled', 'context_full'), 0) AS counted
    FROM problem LEFT JOIN generation ON generation.problem = problem.id AND generation.study IS NULL
), total AS (
    SELECT
        run, task, min(difficulty) AS difficulty, min(method) AS method, count(*) AS answers, sum(done) AS done,
        sum(done AND NOT counted) AS left_out, sum(iif(counted, reference_atoms, 0)) AS reference_atoms,
        sum(iif(counted, (SELECT count(*) FROM unit WHERE unit.generation = answer.id AND unit.kind = 'atom'
            AND unit.status = 'correct'), 0)) AS correct,
        sum(iif(counted, (SELECT count(*) FROM unit WHERE unit.generation = answer.id AND unit.kind = 'atom'
            AND unit.status = 'wrong'), 0)) AS wrong,
        sum(iif(counted, (SELECT count(*) FROM unit WHERE unit.generation = answer.id AND unit.kind = 'atom'
            AND unit.status = 'redundant'), 0)) AS redundant,
        sum(iif(counted, (SELECT count(*) FROM unit WHERE unit.generation = answer.id AND unit.kind = 'atom'
            AND unit.status = 'abstained'), 0)) AS abstained,
        sum(iif(counted, (SELECT count(*) FROM unit WHERE unit.generation = answer.id AND unit.kind = 'atom'
            AND unit.status = 'missing'), 0)) AS missing
    FROM answer
    GROUP BY run, task
), tally AS (
    SELECT *, correct + wrong + redundant + abstained AS atoms FROM total
), setting AS MATERIALIZED (
    SELECT id AS run, json_extract(plan, '$.seed') AS seed, json_extract(plan, '$.width') AS width,
        json_extract(plan, '$.sampling') AS sampling
    FROM run WHERE json_valid(plan)
), task_setting AS MATERIALIZED (
    SELECT run.id AS run, json_extract(item.value, '$.task') AS task, json_extract(item.value, '$.shots') AS shots
    FROM run JOIN json_each(run.plan, '$.tasks') AS item
    WHERE json_valid(run.plan) AND item.type = 'object'
)
SELECT
    tally.run, run.model_name AS model, run.state, run.created_at, tally.task, tally.difficulty, tally.method,
    task_setting.shots, setting.seed, setting.sampling, setting.width, run.statistics, run.exact,
    tally.answers, tally.done, tally.left_out, tally.atoms, tally.correct, tally.wrong, tally.redundant,
    tally.abstained, tally.missing, tally.reference_atoms,
    CAST(tally.correct AS REAL) / nullif(tally.atoms, 0) AS precision,
    CAST(tally.correct AS REAL) / nullif(tally.reference_atoms, 0) AS recall,
    CAST(tally.redundant AS REAL) / nullif(tally.atoms, 0) AS redundancy,
    run.plan_hash, run.environment_hash
FROM tally JOIN run ON run.id = tally.run
LEFT JOIN setting ON setting.run = tally.run
LEFT JOIN task_setting ON task_setting.run = tally.run AND task_setting.task = tally.task
WHERE run.state <> 'deleted';
"""

SCHEMA_HASH = hashlib.sha256((TABLES + VIEWS).encode()).hexdigest()
"""Of the text above; ``schema_version`` holds the hash of the text that made the file."""
