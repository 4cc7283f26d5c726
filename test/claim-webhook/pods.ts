export interface Container {
  readonly name: string;
  readonly restartPolicy?: string;
  readonly resources?: {
    readonly limits?: object;
    readonly requests?: object;
    claims?: readonly { readonly name: string }[];
  };
}

export interface TestPod {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: { readonly name: string; annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: Container[];
    readonly initContainers?: Container[];
    nodeName?: string;
    resourceClaims?: readonly { readonly name: string; readonly [field: string]: string }[];
  };
}

/** A container with limits and equal requests, as the API server fills them in. */
export function container(name: string, cores: number | string, blocks: number, more: object = {}): Container {
  const asked = {
    ...(cores === 0 ? {} : { 'tencent.com/vcuda-core': cores }),
    ...(blocks === 0 ? {} : { 'tencent.com/vcuda-memory': blocks }),
    ...more,
  };
  return { name, resources: { limits: asked, requests: asked } };
}

export function pod(containers: readonly Container[], initContainers: readonly Container[] = []): TestPod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod' },
    spec: {
      containers: [...containers],
      ...(initContainers.length > 0 ? { initContainers: [...initContainers] } : {}),
    },
  };
}

/** Applies a JSON patch that replaces or adds members, as an API server does. */
export function applyPatch(object: TestPod, patch: readonly object[]): TestPod {
  const copy = structuredClone(object);
  for (const { path, value } of patch as readonly { readonly path: string; readonly value: unknown }[]) {
    const segments = path.split('/').slice(1);
    const last = segments.pop() ?? '';
    const parent = segments.reduce<unknown>((at, segment) => (at as Record<string, unknown>)[segment], copy);
    (parent as Record<string, unknown>)[last] = value;
  }
  return copy;
}
