/** A whole answer of the HTTP server. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** JSON that is printed already. */
export function jsonText(body: string, status = 200): Answer {
  return { status, type: JSON_TYPE, body };
}

export function json(document: object, status = 200): Answer {
  return jsonText(JSON.stringify(document), status);
}

export function plain(status: number, line: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, type: TEXT_TYPE, body: `${line}\n`, headers };
}

/**
 * On every answer. The page runs its own scripts and styles and nothing else, talks to its own server only, builds no HTML from text, and is shown
 * in no frame.
 */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
