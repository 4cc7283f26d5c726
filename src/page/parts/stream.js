import { API_PROXY } from './api-proxy.js';

const RETRY_MS = [500, 1000, 2000, 5000];
/** The agent speaks every second: this much silence means that nobody is there. */
const SILENT_MS = 10_000;

/** Behind the API server's proxy, pages of different servers have one origin; none may send the token of another. */
const TOKEN_KEY = `gpu-manager-token ${location.pathname}`;

/** The proxy forwards no `authorization`, and `kubectl proxy` would send it to the API server instead of its own. */
function headers() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token === null) return {};
  return API_PROXY === null ? { authorization: `Bearer ${token}` } : { 'x-gpu-manager-token': token };
}

/** JSON of the agent; null where there is none of that name. */
export async function read(path) {
  const answer = await fetch(path, { headers: headers(), cache: 'no-store' });
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

/** Follows the node for ever. `on.token()` resolves when the reader has given another token. */
export async function follow(on) {
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await once({ ...on, event: (name, data) => ((attempt = 0), on.event(name, data)) });
      if (answer === 401 || answer === 403) {
        sessionStorage.setItem(TOKEN_KEY, await on.token());
        continue;
      }
    } catch {
      // Whatever it was, it is tried again.
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
      // A large message comes in many pieces, and its end may be divided, too.
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
