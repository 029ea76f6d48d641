"""For PostgreSQL: SQLite's functions, live leases, an index for many threads, and the triggers that wake workers.

JSON stays text, as it was written. Where it is read, it is `json` and not `jsonb`, which refuses an escaped NUL and
changes the order of members.
"""

__all__ = ["FUNCTIONS", "FUNCTIONS_VERSION", "TRIGGERS"]

FUNCTIONS_VERSION = 4
"""Raised with each change of what is below; a process that opens a database for writing updates it."""

FUNCTIONS = r"""
CREATE OR REPLACE VIEW leases_now AS SELECT thread_id, owner_token, pid, process_started, boot_id, host, since,
    coalesce(ended_at, CASE WHEN expires_at < clock_timestamp() THEN since END) AS ended_at, rowid FROM leases;
CREATE INDEX IF NOT EXISTS sub_agents ON threads (parent_thread) WHERE parent_call IS NOT NULL;
CREATE OR REPLACE FUNCTION as_bytes(text) RETURNS bytea LANGUAGE sql IMMUTABLE
    AS $$ SELECT convert_to($1, 'UTF8') $$;
CREATE OR REPLACE FUNCTION as_bytes(bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION as_text(bytea) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT convert_from($1, 'UTF8') $$;
CREATE OR REPLACE FUNCTION as_text(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION as_integer(text) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT CAST(substring($1 FROM '^\s*([+-]?\d{1,18})') AS bigint) $$;
CREATE OR REPLACE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE least($1, $2) END $$;
CREATE OR REPLACE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE greatest($1, $2) END $$;
CREATE OR REPLACE FUNCTION text_part(text, bigint) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN $2 < 0 THEN right($1, CAST(-$2 AS integer)) ELSE substr($1, CAST($2 AS integer)) END $$;
CREATE OR REPLACE FUNCTION text_part(text, bigint, bigint) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT substr($1, CAST($2 AS integer), CAST($3 AS integer)) $$;
CREATE OR REPLACE FUNCTION instr(bytea, bytea) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS $$ SELECT CAST(position($2 IN $1) AS bigint) $$;
CREATE OR REPLACE FUNCTION julianday(text) RETURNS double precision LANGUAGE sql STABLE
    AS $$ SELECT CAST(extract(epoch FROM CAST($1 AS timestamptz)) AS double precision) / 86400 + 2440587.5 $$;

CREATE OR REPLACE FUNCTION json_readable(text) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(CASE WHEN strpos($1, '\u0000') > 0
        THEN regexp_replace($1, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\uf8f00', 'g') ELSE $1 END AS json) $$;
CREATE OR REPLACE FUNCTION json_written(json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN strpos(CAST($1 AS text), '\uf8f00') > 0
        THEN regexp_replace(CAST($1 AS text), '(?<!\\)((?:\\\\)*)\\uf8f00', '\1\\u0000', 'g')
        ELSE CAST($1 AS text) END $$;
CREATE OR REPLACE FUNCTION json_path(text) RETURNS text[] LANGUAGE sql IMMUTABLE
    AS $$ SELECT string_to_array(ltrim(translate(substr($1, 2), '[]', '.'), '.'), '.') $$;
CREATE OR REPLACE FUNCTION json_valid(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CAST($1 AS json) IS NOT NULL;
EXCEPTION WHEN data_exception OR statement_too_complex THEN
    RETURN FALSE;
END $$;
CREATE OR REPLACE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT json_readable($1) #>> json_path($2) $$;
CREATE OR REPLACE FUNCTION json_type(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE json_typeof(json_readable($1) #> json_path($2)) WHEN 'string' THEN 'text'
        WHEN 'number' THEN 'integer' ELSE json_typeof(json_readable($1) #> json_path($2)) END $$;
CREATE OR REPLACE FUNCTION json_array_length(text, text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE json_typeof(json_readable($1) #> json_path($2))
        WHEN 'array' THEN json_array_length(json_readable($1) #> json_path($2)) ELSE 0 END $$;
CREATE OR REPLACE FUNCTION json_each(document text, path text) RETURNS TABLE (key bigint, value text)
    LANGUAGE sql IMMUTABLE ROWS 20 AS $$
    SELECT n - 1, CASE WHEN json_typeof(e.v) IN ('object', 'array') THEN CAST(e.v AS text) ELSE e.v #>> '{}' END
    FROM json_array_elements(CASE json_typeof(json_readable($1) #> json_path($2))
        WHEN 'array' THEN json_readable($1) #> json_path($2) ELSE '[]' END) WITH ORDINALITY AS e (v, n) $$;
CREATE OR REPLACE FUNCTION json_each(document text) RETURNS TABLE (key bigint, value text)
    LANGUAGE sql IMMUTABLE ROWS 20 AS $$ SELECT key, value FROM json_each($1, '$') $$;
CREATE OR REPLACE FUNCTION json_set(text, text, json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT json_written(json_object_agg(m.key, m.value)) FROM (
        SELECT key, value FROM pg_catalog.json_each(json_readable($1)) WHERE '$.' || key <> $2
        UNION ALL SELECT substr($2, 3), $3) m $$;
CREATE OR REPLACE FUNCTION json_set(text, text, text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT json_set($1, $2, to_json($3)) $$;
CREATE OR REPLACE FUNCTION json_remove(text, VARIADIC text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(json_written(json_object_agg(key, value)), '{}')
    FROM pg_catalog.json_each(json_readable($1)) WHERE '$.' || key <> ALL ($2) $$;
CREATE OR REPLACE FUNCTION json_list(json[]) RETURNS json LANGUAGE sql IMMUTABLE
    AS $$ SELECT coalesce(array_to_json($1), '[]') $$;
CREATE OR REPLACE AGGREGATE json_group_array(json) (
    SFUNC = array_append, STYPE = json[], FINALFUNC = json_list, INITCOND = '{}');
"""
"""Statements, each of which may be repeated."""

TRIGGERS = """
CREATE OR REPLACE FUNCTION notify_workers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('graph_agent_work', '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER question_answered AFTER INSERT ON decisions
    FOR EACH STATEMENT EXECUTE FUNCTION notify_workers();
CREATE OR REPLACE TRIGGER task_added AFTER INSERT ON tasks FOR EACH STATEMENT EXECUTE FUNCTION notify_workers();
CREATE OR REPLACE TRIGGER task_changed AFTER UPDATE OF state ON tasks
    FOR EACH ROW WHEN (NEW.state IN ('queued', 'cancelled')) EXECUTE FUNCTION notify_workers();
"""
"""The same; they need the table `tasks`."""
