// The documents that the page reads, and how it reads them.

export interface Row {
  name: string;
  labels?: Record<string, string>;
  kubernetesVersion?: string;
  release?: string;
  target?: string;
  phase: string;
  health: string;
  reason?: string;
  waitsFor?: string;
  until?: string;
  updatedAt?: string;
}

export interface Page {
  account: string;
  region: string;
  publishedAt?: string;
  decides?: boolean;
}

export interface RolloutRow {
  name: string;
  state: string;
  message?: string;
  plan?: string;
  run?: number;
  stage?: string;
  members: number;
  good: number;
  failed: number;
}

export interface Member {
  cluster: string;
  state: string;
  reason?: string;
  check?: string;
  since: string;
  until?: string;
  regressedAt?: string;
}

export interface Stage {
  number: number;
  name: string;
  state: string;
  counts: Record<string, number>;
  maxConcurrency: number;
  maxFailures: number;
  failed: number;
  soakUntil?: string;
  passed?: string;
  needs?: string;
  alarmSince?: string;
  rollback?: string;
  members: Member[];
}

// The status of a rollout: see docs/reference/rollout-status.md.
export interface Rollout {
  state: string;
  message?: string;
  problems?: { file: string; message: string }[];
  pausedBy?: string;
  plan?: {
    digest: string; members: number; leftOut: number; stages?: string[]; difference?: string[];
    subject: { releases: { name: string; sha256: string }[] };
  };
  run?: {
    number: number; plan: string; state: string; started: string; ended?: string; pausedBy?: string;
    halt?: { stage?: number; cause: string }; stages: Stage[];
  };
  answers?: Record<string, { applied: boolean; message: string }>;
}

export interface Plan {
  stages: {
    number: number; name: string; fromStage: string; maxConcurrency: number; maxFailures: number; sharedFailures: boolean; budget: string; settle: string;
    soak: string; window?: object; alarms?: string[]; before?: object[]; after?: object[];
    members: { cluster: string; from: { release?: string }; to: { release: string } }[];
  }[];
  leftOut?: { cluster: string; reason: string }[];
}

// The token is in the fragment of the address that drover ui prints. It moves to the storage of this tab, so that a reload keeps it.
function token(): string {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem('token', given[1]);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem('token') ?? '';
}
const bearer = token();

export class Failure extends Error {}

export async function read<T>(path: string): Promise<T> {
  const headers: Record<string, string> = bearer ? { Authorization: `Bearer ${bearer}` } : {};
  const answer = await fetch(path, { headers, cache: 'no-store' });
  if (!answer.ok) {
    throw new Failure(`${path}: ${(await answer.text()).trim() || answer.statusText}`);
  }
  return answer.json();
}

// Decision is what a user wants a rollout to do.
export interface Decision { rollout: string; verb: string; plan?: string; stage?: string; clusters?: string[]; reason?: string }

// decide uploads a decision and waits for its answer.
export async function decide(decision: Decision): Promise<{ applied: boolean; message: string }> {
  const sent = await fetch('decisions', {
    method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${bearer}` }, body: JSON.stringify(decision),
  });
  if (!sent.ok) throw new Failure((await sent.text()).trim() || sent.statusText);
  const { decision: name } = await sent.json();
  const path = `rollouts/answers/${encodeURIComponent(decision.rollout)}/${encodeURIComponent(name)}.json`;
  for (let tries = 0; tries < 60; tries++) {
    const answer = await fetch(path, { headers: { Authorization: `Bearer ${bearer}` }, cache: 'no-store' });
    if (answer.ok) return answer.json();
    if (answer.status !== 404) throw new Failure(`${name} was uploaded, and its answer cannot be read: ${(await answer.text()).trim()}`);
    await new Promise((done) => setTimeout(done, 1000));
  }
  throw new Failure(`${name} was uploaded, and there is no answer after a minute: \`drover rollout history ${decision.rollout}\` shows it`);
}

// short returns the first digits of a digest, as the command line prints it.
export function short(digest: string): string {
  return digest.slice(0, 12);
}

// until returns the time that is left, or an empty string.
export function until(time: string, now: number): string {
  const seconds = Math.round((Date.parse(time) - now) / 1000);
  return seconds > 0 ? span(seconds) : '';
}

// matcher parses what is typed into the filter: words of the name, and requirements of the labels in the syntax of kubectl.
export function matcher(text: string): (row: Row) => boolean {
  const requirements: ((row: Row) => boolean)[] = [];
  for (const part of text.split(/,(?![^(]*\))/).map((p) => p.trim()).filter(Boolean)) {
    const set = /^([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(part);
    const equal = /^([\w./-]+)\s*(!=|==|=)\s*([\w.-]*)$/.exec(part);
    const absent = /^!\s*([\w./-]+)$/.exec(part);
    if (set) {
      const values = set[3].split(',').map((v) => v.trim());
      requirements.push((r) => {
        const value = r.labels?.[set[1]];
        const isIn = value !== undefined && values.includes(value);
        return set[2] === 'in' ? isIn : !isIn;
      });
    } else if (equal) {
      requirements.push((r) => (r.labels?.[equal[1]] === equal[3]) === (equal[2] !== '!='));
    } else if (absent) {
      requirements.push((r) => r.labels?.[absent[1]] === undefined);
    } else {
      requirements.push((r) => r.name.includes(part) || r.labels?.[part] !== undefined);
    }
  }
  return (row) => requirements.every((matches) => matches(row));
}

// valueOf returns what a row is grouped or colored by.
export function valueOf(row: Row, by: string): string {
  switch (by) {
    case '': return '';
    case 'health': return row.health;
    case 'version': return row.kubernetesVersion || 'none';
    case 'release': return row.release || 'none';
    case 'reason': return row.reason || 'none';
    default: return row.labels?.[by.slice('label:'.length)] ?? 'none';
  }
}

export function ago(time: string | undefined, now: number): string {
  if (!time) return 'never';
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}

export function span(seconds: number): string {
  if (seconds < 90) return `${seconds}s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)}m`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)}h`;
  return `${Math.round(seconds / 86400)}d`;
}
