// Requests to the server. All addresses are relative to the page, so that it works under a sub-path.

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.message ?? body.title ?? body.error ?? `The server answered ${status}.`);
    this.status = status;
    this.body = body;
    this.hint = body.fix ? `Try: ${body.fix}` : '';
  }
}

// The server could not be reached. Unlike a problem, this says nothing about the request.
export class Unreachable extends Error {}

const TIMEOUT = 30_000;

export async function request(method, path, body, { signal, timeout = TIMEOUT } = {}) {
  const headers = { 'X-Windlass': '1', Accept: 'application/json' };
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  const limit = AbortSignal.timeout(timeout);
  let answer;
  try {
    answer = await fetch(`api/${path}`, {
      method, headers, cache: 'no-store', credentials: 'same-origin',
      body: method === 'GET' ? undefined : JSON.stringify(body ?? {}),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
  } catch (error) {
    throw new Unreachable(error.message);
  }
  const text = await answer.text().catch(() => '');
  let value = null;
  try { value = text ? JSON.parse(text) : null; } catch { value = { detail: text.slice(0, 300) }; }
  if (!answer.ok) throw new Problem(answer.status, value ?? {});
  return value;
}

export const get = (path, options) => request('GET', path, undefined, options);
export const post = (path, body, options) => request('POST', path, body, options);

// Builds the path of something in a session.
export function inSession(id, rest = '') {
  return `sessions/${encodeURIComponent(id)}${rest && `/${rest}`}`;
}

export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== '' && value !== null);
  return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

// Runs a command line of the user.
export const command = (id, line) => post(inSession(id, 'commands'), { line });

// Creates an id for a send. Repeating a send with the same id has no further effect.
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
