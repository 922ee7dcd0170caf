//! The tables, version by version. A released version is never changed; a new one is added.

/// The statements that lead from each version to the next.
pub(super) const VERSIONS: &[&str] = &[
    "
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL UNIQUE,
    folder TEXT NOT NULL,
    cwd TEXT NOT NULL DEFAULT '',
    -- When something was read last, in milliseconds.
    changed INTEGER NOT NULL,
    -- How many calls were asked for.
    asked INTEGER NOT NULL DEFAULT 0,
    -- How far it was read.
    read_lines INTEGER NOT NULL,
    read_bytes INTEGER NOT NULL,
    read_link TEXT NOT NULL,
    -- How far it is known to have gone. Behind or beside what was read only if someone has changed the file.
    head_lines INTEGER NOT NULL,
    head_bytes INTEGER NOT NULL,
    head_link TEXT NOT NULL
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL REFERENCES files (id),
    -- A short name for people, the same whenever the index is made.
    handle TEXT NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- In milliseconds.
    time INTEGER NOT NULL,
    input_hash BLOB NOT NULL,
    bytes_in INTEGER NOT NULL,
    decision TEXT NOT NULL DEFAULT '',
    held TEXT NOT NULL DEFAULT '',
    -- None while it runs, or if its end was never written down.
    status TEXT,
    -- What kind of failure; none if it did not fail.
    class TEXT,
    -- Whether it did what was asked; none if that says nothing about its tool.
    success INTEGER,
    duration_ms INTEGER NOT NULL DEFAULT 0,
    bytes_out INTEGER NOT NULL DEFAULT 0,
    -- As JSON.
    verdict TEXT,
    -- Where its lines are in the file.
    asked_at INTEGER NOT NULL,
    intent_at INTEGER,
    ended_at INTEGER
);
CREATE INDEX calls_time ON calls (time);
CREATE INDEX calls_tool ON calls (tool, time, success);
CREATE INDEX calls_handle ON calls (handle);
CREATE INDEX calls_file ON calls (file);
CREATE INDEX calls_open ON calls (file, call) WHERE status IS NULL;
",
    "
-- What a person said of it: 1 if it was good, 0 if it was bad.
ALTER TABLE calls ADD COLUMN feedback INTEGER;
ALTER TABLE calls ADD COLUMN said_at INTEGER;
DROP INDEX calls_tool;
CREATE INDEX calls_tool ON calls (tool, time, success, feedback);
",
    "
-- Where the turn begins in which it was asked for, and behind that what the person wrote; none outside of sessions.
ALTER TABLE calls ADD COLUMN turn_at INTEGER;
-- Where the last turn begins that was read.
ALTER TABLE files ADD COLUMN last_turn_at INTEGER;
",
];

/// Returns the newest version.
pub(super) fn newest() -> i64 {
    i64::try_from(VERSIONS.len()).unwrap_or(i64::MAX)
}
