import { type Policy, KNOWN_KINDS } from '../../quota/index.js';
import { BundleReviews } from './bundle-reviews.js';
import { declaredKinds } from '../workloads/kinds.js';
import { ManifestApi } from './manifest-api.js';
import { evaluationBy } from '../policy/evaluation.js';
import { readFacts } from '../policy/read-facts.js';

/** Reviews without a cluster. */
export interface OfflineReviews {
  readonly reviews: BundleReviews;
  /** Policy settings of the engine. */
  readonly enginePolicy: Partial<Policy>;
  /** Errors of policy parts that cannot be read; they are ignored. */
  readonly problems: readonly string[];
}

/**
 * Reviews the objects of a bundle as the webhooks of a cluster would if it had only the objects of some manifests: the
 * bundle itself, a QuotaPolicy, nodes, namespaces, CustomResourceDefinitions.
 */
export async function offlineReviews(manifests: readonly unknown[]): Promise<OfflineReviews> {
  const problems: string[] = [];
  const facts = await readFacts(new ManifestApi(manifests, KNOWN_KINDS), (problem) => problems.push(problem));
  const isNodeKnown = (facts.nodes() ?? []).length > 0;
  const { families, strictTypes, requireLabel, kinds: declared } = facts.policy;
  const evaluators = [...declared, ...KNOWN_KINDS];
  const api = new ManifestApi(manifests, evaluators);
  const reviews = new BundleReviews({
    api,
    // Without nodes the number of pods of a DaemonSet is unknown.
    evaluation: evaluationBy({ ...facts, nodes: () => (isNodeKnown ? facts.nodes() : null) }, {}),
    kinds: await declaredKinds(api, evaluators),
    requireLabel,
    unknownScale: 'untested',
    missing: (reason) => problems.push(reason),
  });
  return { reviews, enginePolicy: { families, strictTypes }, problems };
}
