import { CONVERSION_LABEL, CONVERTED, CONVERTED_TO_RESOURCES } from '../gpu/annotations.js';
import { DRIVER_NAME } from '../gpu/claims/names.js';
import { FOREIGN_RESOURCES } from '../gpu/foreign-requests.js';
import { ASKS_KAI } from './kai-requests.js';
import { CORE_RESOURCE, MEMORY_RESOURCE } from '../gpu/resources.js';
import {
  clientConfig,
  REVIEWS,
  type WebhookConfiguration,
  type WebhookTarget,
} from '../kube/admission/webhook-registration.js';

export interface ClaimWebhookOptions {
  readonly name: string;
  readonly target: WebhookTarget;
  /** Path prefix of every webhook; empty for none. */
  readonly prefix: string;
  /** PEM. */
  readonly authority: string;
}

const hasOurs = (devices: string): string =>
  `has(${devices}.config) && ${devices}.config.exists(c, has(c.opaque) && c.opaque.driver == '${DRIVER_NAME}')`;

/** Whether the object has parameters for this driver, in CEL. Other objects do not wait for the webhook. */
const HAS_PARAMETERS = [
  `request.resource.resource == 'deviceclasses' ? ${hasOurs('object.spec')}`,
  `request.resource.resource == 'resourceclaims' ? has(object.spec.devices) && ${hasOurs('object.spec.devices')}`,
  `has(object.spec.spec.devices) && ${hasOurs('object.spec.spec.devices')}`,
].join(' : ');

/** Whether a container of the pod asks for one of these resources. */
function asksFor(resources: readonly string[]): string {
  const names = resources.map((name) => `'${name}'`).join(', ');
  const asks = (containers: string): string =>
    `${containers}.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(name, name in [${names}]))`;
  return `${asks('object.spec.containers')} || has(object.spec.initContainers) && ${asks('object.spec.initContainers')} || ${ASKS_KAI}`;
}

/** Reviews of parameters. The agent checks them again, so that they need not wait for a replica. */
export function parametersConfiguration({
  name,
  target,
  prefix,
  authority,
}: ClaimWebhookOptions): WebhookConfiguration {
  return {
    metadata: { name },
    webhooks: [
      {
        ...REVIEWS,
        name: `parameters.${DRIVER_NAME}`,
        sideEffects: 'None',
        failurePolicy: 'Ignore',
        clientConfig: clientConfig(target, `${prefix}/parameters`, authority),
        matchConditions: [{ name: 'has-parameters', expression: HAS_PARAMETERS }],
        rules: [
          {
            operations: ['CREATE', 'UPDATE'],
            apiGroups: ['resource.k8s.io'],
            // Objects of other versions are converted to this one.
            apiVersions: ['v1'],
            resources: ['resourceclaims', 'resourceclaimtemplates', 'deviceclasses'],
            scope: '*',
          },
        ],
      },
    ],
  };
}

/**
 * Conversions of pods that ask for one by their own label, or by the label of their namespace unless their own label
 * says otherwise. No node of a cluster with claims alone offers the extended resources, and no node offers those of
 * other projects, so that a pod waits for a replica.
 */
export function conversionConfiguration(options: ClaimWebhookOptions): WebhookConfiguration {
  const ours = [CORE_RESOURCE, MEMORY_RESOURCE];
  return {
    metadata: { name: options.name },
    webhooks: [
      ...conversions(options, {
        value: CONVERTED,
        path: '/pods',
        suffix: '',
        resources: [...ours, ...FOREIGN_RESOURCES],
      }),
      ...conversions(options, {
        value: CONVERTED_TO_RESOURCES,
        path: '/requests',
        suffix: '.requests',
        resources: FOREIGN_RESOURCES,
      }),
    ],
  };
}

interface Conversion {
  /** The value of the label `tencent.com/vcuda-via`. */
  readonly value: string;
  readonly path: string;
  /** The end of the webhooks' names. */
  readonly suffix: string;
  readonly resources: readonly string[];
}

function conversions(
  { target, prefix, authority }: ClaimWebhookOptions,
  { value, path, suffix, resources }: Conversion,
): WebhookConfiguration['webhooks'] {
  const isConverted = { matchExpressions: [{ key: CONVERSION_LABEL, operator: 'In', values: [value] }] };
  const conversion = {
    ...REVIEWS,
    sideEffects: 'NoneOnDryRun',
    failurePolicy: 'Fail',
    // Another webhook may add a container that asks for the resources.
    reinvocationPolicy: 'IfNeeded',
    clientConfig: clientConfig(target, `${prefix}${path}`, authority),
    matchConditions: [{ name: 'asks-for-gpus', expression: asksFor(resources) }],
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: 'Namespaced' }],
  };
  return [
    { ...conversion, name: `pods${suffix}.${DRIVER_NAME}`, objectSelector: isConverted },
    {
      ...conversion,
      name: `namespaces${suffix}.${DRIVER_NAME}`,
      namespaceSelector: isConverted,
      objectSelector: { matchExpressions: [{ key: CONVERSION_LABEL, operator: 'DoesNotExist' }] },
    },
  ];
}
