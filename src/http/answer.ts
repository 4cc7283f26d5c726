import type { ServerResponse } from 'node:http';

/** The answer to an HTTP request. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Writes the body in pieces as long as the caller is connected; called once, after the headers. */
  readonly stream?: (response: ServerResponse) => void;
}

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** An answer with a body that is JSON text already. */
export function jsonText(body: string | Buffer, status = 200): Answer {
  return { status, type: JSON_TYPE, body };
}

export function json(document: unknown, status = 200): Answer {
  return jsonText(JSON.stringify(document), status);
}

/** An answer with one line of text. */
export function plain(status: number, line: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, type: TEXT_TYPE, body: `${line}\n`, headers };
}

/** A refusal with this answer, for code that cannot return one. */
export class RefusedRequest extends Error {
  readonly answer: Answer;

  constructor(status: number, reason: string, headers: Readonly<Record<string, string>> = {}) {
    super(reason);
    this.name = 'RefusedRequest';
    this.answer = plain(status, reason, headers);
  }
}
