import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { fileReason } from '../host/file-reason.js';
import { list, record, text, texts } from '../kube/json.js';

export interface PrometheusOptions {
  /** Base URL, below which `/api/v1` lies. */
  readonly url: URL;
  /** Certificate authorities that may have signed its certificate (PEM); null: those of the system. */
  readonly caFile: string | null;
  /** Bearer token, read for every query; null: none is sent. */
  readonly tokenFile: string | null;
  /** Time limit of one query. */
  readonly timeoutMs?: number;
  /** Larger answers are refused. */
  readonly largestBytes?: number;
}

/** A query at `points` moments, `stepMs` apart; the last one is `endMs`. */
export interface RangeQuery {
  readonly query: string;
  readonly endMs: number;
  readonly stepMs: number;
  readonly points: number;
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** A value for each moment; null where there is none. */
  readonly values: readonly (number | null)[];
}

/** Why there is no answer, as a sentence. */
interface NoAnswer {
  readonly ok: false;
  readonly reason: string;
}

export type RangeAnswer = { readonly ok: true; readonly series: readonly Series[] } | NoAnswer;

/** A value at one moment. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export type InstantAnswer = { readonly ok: true; readonly samples: readonly Sample[] } | NoAnswer;

const TIMEOUT_MS = 5_000;
/** Answers of range queries contain at most this number of series; further ones are dropped. */
export const MAX_SERIES = 64;

/** A reader of Prometheus' HTTP API, or of a server that answers like it. It follows no redirects and never rejects. */
export class Prometheus {
  readonly #options: PrometheusOptions;

  constructor(options: PrometheusOptions) {
    this.#options = options;
  }

  async range({ query, endMs, stepMs, points }: RangeQuery): Promise<RangeAnswer> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const startMs = endMs - (points - 1) * stepMs;
    const parameters = new URLSearchParams({
      query,
      start: String(startMs / 1_000),
      end: String(endMs / 1_000),
      step: String(stepMs / 1_000),
      timeout: `${timeoutMs}ms`,
      limit: String(MAX_SERIES),
    });
    const answer = await this.#ask(`query_range?${parameters.toString()}`, 'matrix');
    if (!answer.ok) return answer;
    const series = answer.result.slice(0, MAX_SERIES).map((one) => {
      const { metric, values } = record(one);
      return placed({ labels: texts(metric), pairs: list(values) }, startMs, stepMs, points);
    });
    return { ok: true, series };
  }

  /** The values of a query at one moment. */
  async instant(query: string, atMs: number): Promise<InstantAnswer> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const parameters = new URLSearchParams({ query, time: String(atMs / 1_000), timeout: `${timeoutMs}ms` });
    const answer = await this.#ask(`query?${parameters.toString()}`, 'vector');
    if (!answer.ok) return answer;
    const samples = answer.result.flatMap((one) => {
      const { metric, value } = record(one);
      const number = numberOf(list(value)[1]);
      return number === null ? [] : [{ labels: texts(metric), value: number }];
    });
    return { ok: true, samples };
  }

  /** How long it keeps samples, in its own words, such as `15d`; null if it does not say. */
  async retention(): Promise<string | null> {
    try {
      const { body } = await this.#get('api/v1/status/runtimeinfo');
      return text(record(record(JSON.parse(body)).data).storageRetention) || null;
    } catch {
      return null;
    }
  }

  async #ask(
    path: string,
    type: 'matrix' | 'vector',
  ): Promise<{ readonly ok: true; readonly result: readonly unknown[] } | NoAnswer> {
    try {
      const { status, body } = await this.#get(`api/v1/${path}`);
      return { ok: true, result: readResult(status, body, type) };
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      return {
        ok: false,
        reason: error instanceof PrometheusFailure ? message : `Prometheus does not answer: ${code ?? message}`,
      };
    }
  }

  async #get(path: string): Promise<{ readonly status: number; readonly body: string }> {
    const { url, caFile, tokenFile, timeoutMs = TIMEOUT_MS, largestBytes = 4 * 1024 * 1024 } = this.#options;
    const token = tokenFile === null ? null : (await read('--prometheus-token-file', tokenFile)).trim();
    const signal = AbortSignal.timeout(timeoutMs);
    const options: RequestOptions & { readonly ca?: string } = {
      // One connection a query: the files may be replaced at any time.
      agent: false,
      signal,
      headers: { accept: 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
      ...(caFile === null ? {} : { ca: await read('--prometheus-ca-file', caFile) }),
    };
    const target = new URL(`${url.href.replace(/\/$/u, '')}/${path}`);
    const late = (error: Error): Error =>
      signal.aborted ? new PrometheusFailure(`Prometheus has not answered within ${timeoutMs / 1_000} s`) : error;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, options, resolve);
      outgoing.on('error', (error) => reject(late(error)));
      outgoing.end();
    });
    try {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > largestBytes)
          throw new PrometheusFailure(`the answer of Prometheus has more than ${largestBytes} bytes`);
        chunks.push(chunk);
      }
      return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') };
    } catch (error) {
      throw late(error as Error);
    } finally {
      response.destroy();
    }
  }
}

/** An error whose message is the complete reason. */
class PrometheusFailure extends Error {}

async function read(flag: string, file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new PrometheusFailure(`the file of ${flag} cannot be read: ${fileReason(error)}`);
  });
}

interface RawSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly pairs: readonly unknown[];
}

function readResult(status: number, body: string, type: string): readonly unknown[] {
  if (status === 401 || status === 403)
    throw new PrometheusFailure(`Prometheus refuses the token (${status}): check --prometheus-token-file`);
  let document;
  try {
    document = record(JSON.parse(body));
  } catch {
    throw new PrometheusFailure(`no API of Prometheus answers there (status ${status}): check --prometheus-url`);
  }
  if (document.status === 'error')
    throw new PrometheusFailure(
      `Prometheus refuses the query: ${text(document.error).slice(0, 200) || text(document.errorType)}`,
    );
  const { resultType, result } = record(document.data);
  if (status !== 200 || document.status !== 'success' || resultType !== type || !Array.isArray(result))
    throw new PrometheusFailure(`no API of Prometheus answers there (status ${status}): check --prometheus-url`);
  return list(result);
}

/** Values are texts; null for one that is no finite number. */
function numberOf(value: unknown): number | null {
  const number = typeof value === 'string' && value !== '' ? Number(value) : NaN;
  return Number.isFinite(number) ? number : null;
}

function placed({ labels, pairs }: RawSeries, startMs: number, stepMs: number, points: number): Series {
  const values: (number | null)[] = Array.from({ length: points }, () => null);
  for (const pair of pairs) {
    const [seconds, value] = list(pair);
    const at = Math.round((Number(seconds) * 1_000 - startMs) / stepMs);
    const number = numberOf(value);
    if (at >= 0 && at < points && number !== null) values[at] = number;
  }
  return { labels, values };
}
