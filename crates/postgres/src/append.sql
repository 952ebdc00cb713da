-- Appends batches of many sessions. The lock on the row of a session is the fence: a takeover waits for it, or is seen by
-- it. A session whose lease or number does not fit is left out, and so is everything that belongs to it.
WITH want AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::float8[],
    $16::bigint[], $17::boolean[], $18::boolean[], $19::text[], $20::boolean[], $38::boolean[], $39::boolean[])
  AS w(id, owner, fence, first, n, time, lag, standing, provider, model, context, title, prompt, completion, cost,
    turns, seen, awake, draft, clear, wants, queued)
), ev AS (
  SELECT * FROM unnest($21::text[], $22::bigint[], $23::text[], $24::text[], $25::text[], $26::bigint[])
  AS e(session, seq, kind, message, payload, time)
), bk AS (
  SELECT * FROM unnest($27::text[], $28::text[], $29::bigint[], $30::text[], $31::text[], $32::text[], $33::bigint[],
    $34::bigint[], $35::bigint[], $36::bigint[], $37::float8[])
  AS b(id, session, time, provider, model, cause, input, output, cache_read, cache_write, cost)
), fresh AS (
  SELECT ev.session, count(DISTINCT ev.message) AS n FROM ev
  WHERE ev.message IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM entry x WHERE x.session = ev.session AND x.message = ev.message)
  GROUP BY ev.session
), up AS (
  UPDATE session s SET last_seq = s.last_seq + w.n,
    updated_at = CASE WHEN w.n > 0 AND s.updated_at + w.lag <= w.time THEN w.time ELSE s.updated_at END,
    messages = s.messages + coalesce((SELECT f.n FROM fresh f WHERE f.session = w.id), 0),
    standing = coalesce(w.standing, s.standing), provider = coalesce(w.provider, s.provider),
    model = coalesce(w.model, s.model), context_tokens = coalesce(w.context, s.context_tokens),
    title = coalesce(w.title, s.title), prompt_tokens = s.prompt_tokens + w.prompt,
    completion_tokens = s.completion_tokens + w.completion, cost_usd = s.cost_usd + w.cost,
    wants_turn = coalesce(w.wants, s.wants_turn), queued = coalesce(w.queued, s.queued)
  FROM want w
  WHERE s.id = w.id AND s.owner = w.owner AND s.fence = w.fence AND (w.n = 0 OR s.last_seq = w.first - 1)
  RETURNING s.id, s.fence
), ins AS (
  INSERT INTO entry (session, seq, fence, kind, message, payload, time)
  SELECT ev.session, ev.seq, up.fence, ev.kind, ev.message, ev.payload, ev.time FROM ev JOIN up ON up.id = ev.session
), booked AS (
  INSERT INTO booking (id, session, time, provider, model, cause, input, output, cache_read, cache_write, cost_usd)
  SELECT bk.id, bk.session, bk.time, bk.provider, bk.model, bk.cause, bk.input, bk.output, bk.cache_read,
    bk.cache_write, bk.cost FROM bk JOIN up ON up.id = bk.session
), ag AS (
  UPDATE agent a SET tokens = a.tokens + w.prompt + w.completion, cost_usd = a.cost_usd + w.cost,
    turns = a.turns + w.turns, seen_at = CASE WHEN w.seen THEN w.time ELSE a.seen_at END,
    state = CASE WHEN w.awake AND a.state = 'waiting' THEN 'running' ELSE a.state END,
    waiting_on = CASE WHEN w.awake THEN NULL ELSE a.waiting_on END
  FROM want w JOIN up ON up.id = w.id
  WHERE a.session = w.id AND (w.seen OR w.awake OR w.turns > 0 OR w.prompt > 0 OR w.completion > 0)
), drafted AS (
  INSERT INTO draft (session, fence, payload, time)
  SELECT w.id, w.fence, w.draft, w.time FROM want w JOIN up ON up.id = w.id WHERE w.draft IS NOT NULL
  ON CONFLICT (session) DO UPDATE SET payload = excluded.payload, time = excluded.time, fence = excluded.fence
), cleared AS (
  DELETE FROM draft d USING want w, up WHERE up.id = w.id AND d.session = w.id AND w.clear
), took AS (
  UPDATE inbox i SET taken = (extract(epoch FROM clock_timestamp()) * 1000)::bigint, answer = '' FROM up
  WHERE i.session = up.id AND i.taken IS NULL AND i.id = ANY($40::text[]) RETURNING i.id, i.sender
)
SELECT id, (SELECT count(pg_notify('wl_' || md5(took.sender), 'answered ' || took.id)) FROM took) FROM up
