import type { ApiRequest, Verb } from './api-request.js';
import type { Json } from './kube-object.js';

/** The requests to which a fault applies; an absent field matches every request. */
export interface FaultMatch {
  readonly verb?: Verb | readonly Verb[];
  /** Plural. */
  readonly resource?: string;
  /** Empty string: the object itself, no subresource. */
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
}

export type FaultEffect =
  /** Refuses with this HTTP status and a Status object; `body` replaces the latter unchanged. */
  | {
      readonly do: 'answer';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
      readonly body?: string;
    }
  /** Answers rightly, but late. */
  | { readonly do: 'delay'; readonly ms: number }
  /** Takes the request and never answers; the connection stays open. */
  | { readonly do: 'hang' }
  /** Cuts the connection before anything is done. */
  | { readonly do: 'reset' }
  /** Does what was asked, then cuts the connection instead of answering. */
  | { readonly do: 'lose-answer' }
  /** Does what was asked, sends half of the answer, then cuts the connection. */
  | { readonly do: 'truncate' }
  /** Lies: the answer (for a watch: each event) is what `change` makes of it. */
  | { readonly do: 'distort'; readonly change: (body: Json) => unknown };

/** An active fault. */
export interface Fault {
  readonly effect: FaultEffect;
  /** Number of requests to which the fault was applied. */
  readonly hits: number;
  remove(): void;
}

/** Active faults, oldest first; the first that matches a request applies. */
export class Faults {
  #rules: {
    readonly match: FaultMatch;
    readonly fault: { effect: FaultEffect; hits: number; remove(): void };
    left: number;
  }[] = [];

  /** `times` limits the number of requests; without it the fault stays until removed. */
  add(match: FaultMatch, effect: FaultEffect, times = Infinity): Fault {
    const fault = {
      effect,
      hits: 0,
      remove: () => void (this.#rules = this.#rules.filter((rule) => rule.fault !== fault)),
    };
    this.#rules.push({ match, fault, left: times });
    return fault;
  }

  clear(): void {
    this.#rules = [];
  }

  /** The effect on this request, which is counted. */
  take(request: ApiRequest): FaultEffect | null {
    const rule = this.#rules.find((entry) => entry.left > 0 && matches(entry.match, request));
    if (rule === undefined) return null;
    rule.left -= 1;
    rule.fault.hits += 1;
    return rule.fault.effect;
  }
}

function matches(match: FaultMatch, request: ApiRequest): boolean {
  const verbs = match.verb === undefined ? null : typeof match.verb === 'string' ? [match.verb] : match.verb;
  return (
    (verbs === null || verbs.includes(request.verb)) &&
    (match.resource === undefined || match.resource === request.type.plural) &&
    (match.subresource === undefined || match.subresource === request.subresource) &&
    (match.namespace === undefined || match.namespace === request.namespace) &&
    (match.name === undefined || match.name === request.name) &&
    (match.dryRun === undefined || match.dryRun === request.query.has('dryRun'))
  );
}
