import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** Default limits and requests of containers, from a LimitRange. */
export interface ContainerDefaults {
  readonly limits: Readonly<Record<string, Json>>;
  readonly requests: Readonly<Record<string, Json>>;
}

/**
 * Completes a PodSpec as the API server does: containers get the defaults of their namespace, and the pod gets the
 * overhead of its RuntimeClass.
 */
export function completedPod(
  reader: ManifestReader,
  spec: Json,
  path: string,
  defaults: ContainerDefaults | null,
  overheadOf: (runtimeClass: string) => Json,
): Json {
  const runtimeClass = reader.text(reader.at(spec, 'runtimeClassName'), `${path}.runtimeClassName`);
  const overhead =
    runtimeClass === '' || reader.at(spec, 'overhead') !== undefined ? undefined : overheadOf(runtimeClass);
  if (defaults === null && overhead === undefined) return spec;
  const filled = (name: string): object => {
    const containers = reader.at(spec, name);
    if (defaults === null || !Array.isArray(containers)) return {};
    return { [name]: containers.map((container: Json) => withDefaults(reader, container, defaults)) };
  };
  return {
    ...(spec as object | undefined),
    ...(overhead === undefined ? {} : { overhead }),
    ...filled('containers'),
    ...filled('initContainers'),
  };
}

function withDefaults(reader: ManifestReader, container: Json, { limits, requests }: ContainerDefaults): Json {
  const given = (side: string): object => reader.at(container, 'resources', side) ?? {};
  return {
    ...(container as object),
    resources: {
      ...(reader.at(container, 'resources') as object | undefined),
      limits: { ...limits, ...given('limits') },
      // A limit without a request is also the request; this comes before defaults.
      requests: { ...requests, ...given('limits'), ...given('requests') },
    },
  };
}
