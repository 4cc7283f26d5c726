import type { LimitedLog } from '../host/limited-log.js';
import { json, jsonText, plain, RefusedRequest, type Answer } from '../http/answer.js';
import type { HttpRequest, Route } from '../http/listener.js';
import { BadArguments, readBindingArguments, readExtenderArguments, readPreemptionArguments } from './arguments.js';
import type { ExtenderService } from './extender-service.js';
import type { ExtenderMetrics } from './extender-metrics.js';
import { filterError, printFilterResult, type FilterResult } from './results.js';

export interface VerbRoutesOptions {
  readonly service: ExtenderService;
  readonly metrics: ExtenderMetrics;
  /** Why the extender cannot answer the scheduler yet; null once it can. */
  readonly notReady: () => string | null;
  /** Called for each request. */
  readonly asked: () => void;
  readonly log: LimitedLog;
}

/** One verb of the scheduler. */
interface Verb {
  readonly name: string;
  readonly answer: (body: Buffer) => unknown;
  readonly print: (answer: unknown) => string | readonly Buffer[];
  /** Builds this verb's answer for an error; null if only the HTTP status can report it. */
  readonly failure: ((reason: string) => unknown) | null;
  readonly failed: (answer: unknown) => boolean;
}

/** The routes of kube-scheduler's calls, `POST /scheduler/<verb>`, by path. */
export function verbRoutes(options: VerbRoutesOptions): Readonly<Record<string, Route>> {
  const verbs = Object.entries(verbsOf(options.service));
  return Object.fromEntries(
    verbs.map(([path, verb]): [string, Route] => [
      `/scheduler/${path}`,
      { method: 'POST', answer: (request) => call(verb, request, options) },
    ]),
  );
}

async function call(
  verb: Verb,
  request: HttpRequest,
  { metrics, notReady, asked, log }: VerbRoutesOptions,
): Promise<Answer> {
  const started = performance.now();
  const answered = (result: 'ok' | 'error'): void =>
    metrics.answered(verb.name, result, (performance.now() - started) / 1000);
  try {
    const body = await request.bytes();
    asked();
    const waiting = notReady();
    if (waiting !== null) throw new RefusedRequest(503, waiting);
    const answer = await verb.answer(body);
    answered(verb.failed(answer) ? 'error' : 'ok');
    const printed = verb.print(answer);
    return typeof printed === 'string' ? jsonText(printed) : inPieces(printed);
  } catch (error) {
    const refusal = error instanceof BadArguments ? new RefusedRequest(400, error.message) : error;
    if (!(refusal instanceof RefusedRequest)) throw error;
    answered('error');
    const reason = refusal.message;
    log.warn({ verb: verb.name, reason }, 'a request of the scheduler failed');
    return verb.failure === null ? plain(refusal.answer.status, reason) : json(verb.failure(reason));
  }
}

/** An answer that is not copied into one buffer. */
function inPieces(pieces: readonly Buffer[]): Answer {
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  return {
    ...jsonText(''),
    headers: { 'content-length': String(bytes) },
    stream: (response) => {
      response.cork();
      for (const piece of pieces) response.write(piece);
      response.uncork();
      response.end();
    },
  };
}

function verbsOf(service: ExtenderService): Record<string, Verb> {
  const hasError = (answer: unknown): boolean => (answer as { Error?: string }).Error !== '';
  return {
    predicates: {
      name: 'filter',
      answer: (body) => service.filter(readExtenderArguments(body)),
      print: (answer) => printFilterResult(answer as FilterResult),
      failure: filterError,
      failed: hasError,
    },
    prioritize: {
      name: 'prioritize',
      answer: (body) => service.prioritize(readExtenderArguments(body)),
      print: JSON.stringify,
      failure: null,
      failed: () => false,
    },
    bind: {
      name: 'bind',
      answer: (body) => service.bind(readBindingArguments(body)),
      print: JSON.stringify,
      failure: (Error) => ({ Error }),
      failed: hasError,
    },
    preempt: {
      name: 'preempt',
      answer: (body) => service.preempt(readPreemptionArguments(body)),
      print: JSON.stringify,
      failure: null,
      failed: () => false,
    },
  };
}
