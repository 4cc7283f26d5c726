import { API_PROXY } from './api-proxy.js';

const RETRY_MS = [500, 1000, 2000, 5000];
/** The agent sends a message every second; after this long without one, the connection counts as lost. */
const SILENT_MS = 10_000;

/** Behind the API server's proxy, pages of different servers have one origin; none may send the token of another. */
const TOKEN_KEY = `gpu-manager-token ${location.pathname}`;

/** The proxy forwards no `authorization`, and `kubectl proxy` would send it to the API server instead of its own. */
function headers() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token === null) return {};
  return API_PROXY === null ? { authorization: `Bearer ${token}` } : { 'x-gpu-manager-token': token };
}

/** Reads JSON from the server of the page; null if the path does not exist. */
export async function read(path) {
  const answer = await get(path);
  return answer.status === 404 ? null : answer.json();
}

/** Reads a text; null if the path does not exist. */
export async function readText(path) {
  const answer = await get(path);
  return answer.status === 404 ? null : answer.text();
}

async function get(path) {
  const answer = await fetch(path, { headers: headers(), cache: 'no-store' });
  if (answer.status !== 404 && !answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

/** Sends JSON to the server of the page, which changes something; returns its answer. */
export async function send(path, body) {
  const answer = await fetch(path, {
    method: 'POST',
    headers: { ...headers(), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).trim()}`);
  return answer.json();
}

/** Receives the updates of the node without end. `on.token()` resolves when the reader has entered another token. */
export async function follow(on) {
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await once({ ...on, event: (name, data) => ((attempt = 0), on.event(name, data)) });
      if (answer === 401 || answer === 403) {
        sessionStorage.setItem(TOKEN_KEY, await on.token());
        continue;
      }
    } catch {
      // Every failure is retried.
    }
    on.lost();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]));
  }
}

/** One connection, read as a stream since EventSource sends no token. Resolves when it ends, with its status. */
async function once(on) {
  const abort = new AbortController();
  let alarm = setTimeout(() => abort.abort(), SILENT_MS);
  try {
    const answer = await fetch('api/stream', { headers: headers(), cache: 'no-store', signal: abort.signal });
    if (!answer.ok) return answer.status;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = [''];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return answer.status;
      clearTimeout(alarm);
      alarm = setTimeout(() => abort.abort(), SILENT_MS);
      // A large message arrives in many pieces, and its end can be split.
      const isEnd = value.includes('\n\n') || (rest.at(-1).endsWith('\n') && value.startsWith('\n'));
      rest.push(value);
      if (!isEnd) continue;
      const messages = rest.join('').split('\n\n');
      rest = [messages.pop()];
      for (const message of messages) {
        const [, name, data] = /^event: (\w+)\ndata: ([^]*)$/u.exec(message) ?? [];
        if (name !== undefined) on.event(name, JSON.parse(data));
      }
    }
  } finally {
    clearTimeout(alarm);
    abort.abort();
  }
}
