import type { Policy } from '../quota/core/policy.js';
import { KNOWN_KINDS } from '../quota/evaluators/evaluate.js';
import { BundleReviews } from './bundle-reviews.js';
import { declaredKinds } from './kinds.js';
import { ManifestApi } from './manifest-api.js';
import { evaluationBy } from './policy/evaluation.js';
import { readFacts } from './policy/read-facts.js';

/** How objects are treated that no cluster has. */
export interface OfflineReviews {
  readonly reviews: BundleReviews;
  /** What the policy says to the engine itself. */
  readonly enginePolicy: Partial<Policy>;
  /** Parts of the policy that cannot be read; it holds without them. */
  readonly problems: readonly string[];
}

/**
 * Treats the objects of a bundle as the webhooks of a cluster would that holds nothing but some manifests: the bundle
 * itself, a QuotaPolicy, nodes, namespaces, CustomResourceDefinitions.
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
    // Without nodes nobody knows how many pods a DaemonSet has.
    evaluation: evaluationBy({ ...facts, nodes: () => (isNodeKnown ? facts.nodes() : null) }, {}),
    kinds: await declaredKinds(api, evaluators),
    requireLabel,
    unknownScale: 'untested',
    missing: (reason) => problems.push(reason),
  });
  return { reviews, enginePolicy: { families, strictTypes }, problems };
}
