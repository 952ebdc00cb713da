// Numbers and times in the reader's own language.

const number = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });

export const count = (value) => number.format(value ?? 0);
export const tokens = (value) => compact.format(value ?? 0);
export const moment = (ms) => full.format(new Date(ms));

// Formats an amount of US dollars: enough digits to see small ones grow.
// A price that is not known is never shown as a number.
export function money(value, unpriced = false) {
  const amount = value ?? 0;
  if (unpriced) return amount === 0 ? '?' : `${money(amount)}+`;
  if (amount === 0) return '$0';
  return `$${amount.toFixed(amount < 0.01 ? 4 : amount < 1 ? 3 : 2)}`;
}

// Formats a duration in milliseconds.
export function span(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

// Formats a running time, which changes every second.
export function elapsed(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

// Formats a time: today by the clock, then by the day.
export function when(ms) {
  const date = new Date(ms);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}

// Formats the age of something.
export function ago(ms) {
  const seconds = Math.round((ms - Date.now()) / 1000);
  if (seconds > -45) return 'now';
  if (seconds > -3600) return relative.format(Math.round(seconds / 60), 'minute');
  if (seconds > -86_400) return relative.format(Math.round(seconds / 3600), 'hour');
  return relative.format(Math.round(seconds / 86_400), 'day');
}

// Shortens a path: the home folder and everything but the last parts.
export function place(path) {
  const parts = String(path ?? '').split('/').filter(Boolean);
  return parts.length <= 2 ? `/${parts.join('/')}` : `…/${parts.slice(-2).join('/')}`;
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// Makes a sentence of a clause.
export function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?:]$/.test(whole) ? whole : `${whole}.`;
}
