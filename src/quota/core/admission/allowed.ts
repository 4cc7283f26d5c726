import type { Chain } from '../state/group.js';
import { chargesOf } from './admission.js';
import { NO_HINTS, NO_VIOLATIONS, NO_WARNINGS, type Decision } from './decision.js';
import type { Key } from '../../../manifests/key.js';
import type { Layout } from '../amounts/layout.js';
import type { ChargeVector } from './charge-vector.js';
import type { Workload } from '../state/workload.js';
import { unchargedGpus } from './uncharged-gpus.js';

/** The decision on most workloads: allowed. Its parts are computed when they are read. */
export class AllowedDecision implements Decision {
  readonly allowed = true;
  readonly code = 'OK';
  readonly revision: number;
  readonly reservation?: string;
  readonly #chain: Chain;
  readonly #layout: Layout;
  readonly #delta: ChargeVector;
  readonly #workload: Workload | null;

  constructor(
    revision: number,
    chain: Chain,
    delta: ChargeVector,
    workload: Workload | null,
    reservation: string | undefined,
  ) {
    this.revision = revision;
    this.#chain = chain;
    this.#layout = chain.first.layout;
    this.#delta = delta;
    this.#workload = workload;
    if (reservation !== undefined) this.reservation = reservation;
  }

  get message(): string {
    return 'allowed';
  }

  get violations(): Decision['violations'] {
    return NO_VIOLATIONS;
  }

  get warnings(): Decision['warnings'] {
    const uncharged = this.#workload === null ? [] : unchargedGpus(this.#layout, this.#workload);
    if (uncharged.length === 0) return NO_WARNINGS;
    const { name } = this.#chain.first;
    return uncharged.map((key) => ({
      code: 'NotCharged',
      key,
      reason: `no key of group ${name} charges ${key}, so it is not limited; the key gpus counts GPUs of every resource`,
    }));
  }

  get hints(): Decision['hints'] {
    return NO_HINTS;
  }

  get charged(): ReadonlyMap<Key, bigint> {
    return chargesOf(this.#layout, this.#delta);
  }

  get path(): readonly string[] {
    return this.#chain.groups.map(({ name }) => name);
  }
}
