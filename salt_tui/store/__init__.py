"""The SQLite file: schema, migrations, the one writer, read-only queries and exports.  Nobody else speaks SQL."""
