import { GROUP_LABEL } from '../../manifests/group-label.js';
import type { KubeApi } from '../../kube/client.js';
import {
  clientConfig,
  REVIEWS,
  writeConfiguration,
  type WebhookConfiguration,
  type WebhookTarget,
} from '../../kube/admission/webhook-registration.js';
import type { Announced } from '../../kube/admission/webhook-identity.js';
import type { ServedKind } from '../workloads/kinds.js';
import { NAME_LABEL, SYSTEM_NAMESPACE } from '../policy/default-groups.js';
import { API_GROUP } from '../../kube/quota/names.js';
import { CORE_RESIZE_KEY, MEMORY_RESIZE_KEY } from '../../manifests/gpu-resize.js';
import type { DefaultFor } from '../../kube/quota/default-for.js';
import type { LabelSelector } from '../../manifests/label-selector.js';

export interface WebhookOptions {
  readonly name: string;
  readonly target: WebhookTarget;
  /** Path prefix of every webhook; empty for none. */
  readonly prefix?: string;
  /** PEM. */
  readonly authority: string;
  readonly kinds: readonly ServedKind[];
  /**
   * Failure policy for scaling and autoscalers when no replica answers: such a request does not show whether the object
   * is managed.
   */
  readonly unlabelled: 'Ignore' | 'Fail';
  readonly groupLabel?: string;
  /** Namespaces whose workloads must name a group; null or absent for none. */
  readonly requireLabel?: LabelSelector | null;
  /** Namespaces whose objects without a group are charged to one. */
  readonly defaultFor?: readonly DefaultFor[];
  /** Excluded from this rule, as kube-system is: the webhooks run in this namespace. */
  readonly ownNamespace?: string;
}

const REVIEW = { ...REVIEWS, sideEffects: 'NoneOnDryRun' } as const;

/** Whether an update changes an annotation that resizes the pod's share of a GPU. */
const RESIZES_GPUS = `['${CORE_RESIZE_KEY}', '${MEMORY_RESIZE_KEY}'].exists(key,
  (has(object.metadata.annotations) && key in object.metadata.annotations ? object.metadata.annotations[key] : '') !=
  (has(oldObject.metadata.annotations) && key in oldObject.metadata.annotations ? oldObject.metadata.annotations[key] : ''))`;

/**
 * The ValidatingWebhookConfiguration. Its object selectors match only workloads that name a group before or after the
 * change, so that other objects are admitted even when no replica answers.
 */
export function webhookConfiguration(options: WebhookOptions): WebhookConfiguration {
  const { name, target, prefix = '', authority, kinds, unlabelled, groupLabel = GROUP_LABEL } = options;
  const { requireLabel = null, defaultFor = [], ownNamespace = SYSTEM_NAMESPACE } = options;
  const notExempt = { key: NAME_LABEL, operator: 'NotIn', values: [...new Set([SYSTEM_NAMESPACE, ownNamespace])] };
  const config = (path: string): object => clientConfig(target, `${prefix}${path}`, authority);
  const rules = (
    resourcesOf: (kind: ServedKind) => string,
    operations: readonly string[],
    chosen: readonly ServedKind[],
  ) => {
    const groups = [...new Set(chosen.map(({ evaluator }) => evaluator.apiGroup))];
    return groups.map((apiGroup) => ({
      operations,
      apiGroups: [apiGroup],
      apiVersions: ['*'],
      resources: chosen.filter(({ evaluator }) => evaluator.apiGroup === apiGroup).map(resourcesOf),
      scope: '*',
    }));
  };
  const scaled = kinds.filter(
    ({ resource, evaluator }) => !['pods', 'jobs', 'daemonsets'].includes(resource) && evaluator.amounts === undefined,
  );
  return {
    metadata: { name },
    webhooks: [
      {
        ...REVIEW,
        name: `groups.${API_GROUP}`,
        failurePolicy: 'Fail',
        clientConfig: config('/groups'),
        rules: [
          {
            operations: ['CREATE', 'UPDATE', 'DELETE'],
            apiGroups: [API_GROUP],
            apiVersions: ['*'],
            resources: ['bizgroupresourcequotas'],
            scope: '*',
          },
        ],
      },
      {
        ...REVIEW,
        name: `consumers.${API_GROUP}`,
        failurePolicy: 'Fail',
        clientConfig: config('/consumers'),
        rules: [
          {
            operations: ['CREATE', 'UPDATE'],
            apiGroups: [API_GROUP],
            apiVersions: ['*'],
            resources: ['consumers'],
            scope: '*',
          },
        ],
      },
      {
        ...REVIEW,
        name: `workloads.${API_GROUP}`,
        failurePolicy: 'Fail',
        clientConfig: config('/workloads'),
        objectSelector: { matchExpressions: [{ key: groupLabel, operator: 'Exists' }] },
        rules: rules(({ resource }) => resource, ['CREATE', 'UPDATE'], kinds),
      },
      ...(requireLabel === null
        ? []
        : [
            {
              ...REVIEW,
              name: `unlabelled.${API_GROUP}`,
              failurePolicy: unlabelled,
              clientConfig: config('/unlabelled'),
              objectSelector: { matchExpressions: [{ key: groupLabel, operator: 'DoesNotExist' }] },
              namespaceSelector: {
                ...requireLabel,
                matchExpressions: [...(requireLabel.matchExpressions ?? []), notExempt],
              },
              rules: rules(({ resource }) => resource, ['CREATE'], kinds),
            },
          ]),
      ...selectorsOf(defaultFor).map((selector, index) => ({
        ...REVIEW,
        name: `default-${index}.${API_GROUP}`,
        failurePolicy: unlabelled,
        clientConfig: config('/workloads'),
        objectSelector: { matchExpressions: [{ key: groupLabel, operator: 'DoesNotExist' }] },
        namespaceSelector: {
          ...selector,
          matchExpressions: [...(selector.matchExpressions ?? []), notExempt],
        },
        rules: rules(({ resource }) => resource, ['CREATE', 'UPDATE'], kinds),
      })),
      {
        ...REVIEW,
        name: `scale.${API_GROUP}`,
        failurePolicy: unlabelled,
        clientConfig: config('/scale'),
        rules: rules(({ resource }) => `${resource}/scale`, ['UPDATE'], scaled),
      },
      {
        ...REVIEW,
        name: `resize.${API_GROUP}`,
        failurePolicy: unlabelled,
        clientConfig: config('/resize'),
        rules: [
          { operations: ['UPDATE'], apiGroups: [''], apiVersions: ['*'], resources: ['pods/resize'], scope: '*' },
        ],
      },
      {
        ...REVIEW,
        name: `gpu-resize.${API_GROUP}`,
        failurePolicy: unlabelled,
        clientConfig: config('/resize'),
        // The webhook for workloads receives pods with the label. API servers before 1.28 ignore the condition.
        objectSelector: { matchExpressions: [{ key: groupLabel, operator: 'DoesNotExist' }] },
        matchConditions: [{ name: 'resizes-gpus', expression: RESIZES_GPUS }],
        rules: [{ operations: ['UPDATE'], apiGroups: [''], apiVersions: ['*'], resources: ['pods'], scope: '*' }],
      },
      {
        ...REVIEW,
        name: `autoscalers.${API_GROUP}`,
        failurePolicy: unlabelled,
        clientConfig: config('/autoscalers'),
        rules: [
          {
            operations: ['CREATE', 'UPDATE'],
            apiGroups: ['autoscaling'],
            apiVersions: ['*'],
            resources: ['horizontalpodautoscalers'],
            scope: '*',
          },
        ],
      },
    ],
  };
}

/** Selectors of the namespaces that groups name: one for all lists, and each different selector once. */
function selectorsOf(defaultFor: readonly DefaultFor[]): readonly LabelSelector[] {
  const listed = [...new Set(defaultFor.flatMap(({ namespaces }) => namespaces))].sort();
  const selectors = new Map(
    defaultFor.flatMap(({ namespaceSelector }) =>
      namespaceSelector === null ? [] : [[JSON.stringify(namespaceSelector), namespaceSelector] as const],
    ),
  );
  return [
    ...(listed.length === 0 ? [] : [{ matchExpressions: [{ key: NAME_LABEL, operator: 'In', values: listed }] }]),
    ...[...selectors].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, selector]) => selector),
  ];
}

/** The MutatingWebhookConfiguration: the Jobs of a CronJob get its group and types. */
export function inheritConfiguration({
  name,
  target,
  prefix = '',
  authority,
  groupLabel = GROUP_LABEL,
}: WebhookOptions): WebhookConfiguration {
  return {
    metadata: { name },
    webhooks: [
      {
        ...REVIEW,
        sideEffects: 'None',
        // Another webhook that runs later may change the label or the template.
        reinvocationPolicy: 'IfNeeded',
        name: `inherit.${API_GROUP}`,
        failurePolicy: 'Fail',
        clientConfig: clientConfig(target, `${prefix}/inherit`, authority),
        objectSelector: { matchExpressions: [{ key: groupLabel, operator: 'Exists' }] },
        rules: [
          {
            operations: ['CREATE', 'UPDATE'],
            apiGroups: ['batch'],
            apiVersions: ['*'],
            resources: ['cronjobs'],
            scope: '*',
          },
        ],
      },
    ],
  };
}

export interface RegisterOptions extends Omit<WebhookOptions, keyof Announced> {
  /**
   * Returns target, path prefix and authority of now. Called after the configuration was read, so that an older
   * authority never replaces a newer one.
   */
  readonly announced: () => Promise<Announced>;
}

/** Creates or updates the webhook configurations. */
export async function register(api: KubeApi, options: RegisterOptions): Promise<void> {
  for (const [kind, configurationOf] of [
    ['ValidatingWebhookConfiguration', webhookConfiguration],
    ['MutatingWebhookConfiguration', inheritConfiguration],
  ] as const)
    await writeConfiguration(api, kind, options.name, async () =>
      configurationOf({ ...options, ...(await options.announced()) }),
    );
}
