import { isJsonObject, valueAt, type Json, type KubeObject } from './kube-object.js';
import type { ResourceType } from './resource-type.js';

/** The resources that a CustomResourceDefinition defines, one for each served version. */
export function customTypes(definition: KubeObject): ResourceType[] {
  const spec = isJsonObject(definition.spec) ? definition.spec : {};
  const versions = Array.isArray(spec.versions) ? (spec.versions as Json[]) : [];
  return versions
    .filter((version) => version.served !== false)
    .map((version) => {
      const specReplicas = valueAt(version, 'subresources.scale.specReplicasPath');
      const statusReplicas = valueAt(version, 'subresources.scale.statusReplicasPath');
      return {
        group: text(spec.group),
        version: text(version.name),
        plural: text(valueAt(spec, 'names.plural')),
        kind: text(valueAt(spec, 'names.kind')),
        namespaced: spec.scope === 'Namespaced',
        shortNames: (valueAt(spec, 'names.shortNames') ?? []) as string[],
        custom: true,
        schema: valueAt(version, 'schema.openAPIV3Schema') ?? { 'x-kubernetes-preserve-unknown-fields': true },
        generation: true,
        statusSubresource: valueAt(version, 'subresources.status') !== undefined,
        ...(typeof specReplicas === 'string' && typeof statusReplicas === 'string'
          ? {
              scale: {
                specReplicas: specReplicas.replace(/^\./, ''),
                statusReplicas: statusReplicas.replace(/^\./, ''),
              },
            }
          : {}),
      };
    });
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
