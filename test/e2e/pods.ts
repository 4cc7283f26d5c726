import { BUSYBOX_IMAGE, NODE } from './cluster.js';

export interface TestContainer {
  readonly name: string;
  readonly cores: number;
  readonly memoryBlocks: number;
  readonly command: string;
  /** By default BUSYBOX_IMAGE. */
  readonly image?: string;
  readonly user?: number;
  readonly readOnlyRoot?: boolean;
  /** Writable host directories, by their path in the container. */
  readonly directories?: Readonly<Record<string, string>>;
}

/** A deployment of one sleeping pod, labelled `app: NAME`, whose container `main` has these limits. */
export function sleepingDeployment(
  name: string,
  limits: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>> = {},
): object {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations },
        spec: {
          hostNetwork: true,
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: 'main',
              image: BUSYBOX_IMAGE,
              imagePullPolicy: 'Never',
              command: ['/bin/sh', '-c', 'sleep 100000'],
              resources: { limits },
            },
          ],
        },
      },
    },
  };
}

/**
 * A pod that this cluster can run: no network of its own, no image pull, no service account token. With `node` null the
 * scheduler chooses.
 */
export function podManifest(
  name: string,
  containers: readonly TestContainer[],
  initContainers: readonly TestContainer[] = [],
  restartPolicy = 'Never',
  node: string | null = NODE,
): object {
  const volumes = new Map<string, string>();
  const mount = (hostPath: string): string => {
    if (!volumes.has(hostPath)) volumes.set(hostPath, `v${volumes.size}`);
    return volumes.get(hostPath) ?? '';
  };
  const convert = ({
    name: container,
    cores,
    memoryBlocks,
    command,
    image,
    user,
    readOnlyRoot,
    directories,
  }: TestContainer): object => ({
    name: container,
    image: image ?? BUSYBOX_IMAGE,
    securityContext: {
      readOnlyRootFilesystem: readOnlyRoot ?? false,
      ...(user === undefined ? {} : { runAsUser: user }),
    },
    volumeMounts: Object.entries(directories ?? {}).map(([mountPath, hostPath]) => ({
      name: mount(hostPath),
      mountPath,
    })),
    imagePullPolicy: 'Never',
    command: ['sh', '-c', command],
    resources: {
      limits: {
        ...(cores === 0 ? {} : { 'tencent.com/vcuda-core': String(cores) }),
        ...(memoryBlocks === 0 ? {} : { 'tencent.com/vcuda-memory': String(memoryBlocks) }),
      },
    },
  });
  const converted = { initContainers: initContainers.map(convert), containers: containers.map(convert) };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { suite: 'gpu-manager' } },
    spec: {
      ...(node === null ? {} : { nodeName: node }),
      hostNetwork: true,
      restartPolicy,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      ...converted,
      volumes: [...volumes].map(([path, name]) => ({ name, hostPath: { path } })),
    },
  };
}

/** The output by which a container shows what it received; `read` parses it. */
export const SHOW =
  'echo LD=$LD_LIBRARY_PATH; echo UUID=$NVIDIA_VISIBLE_DEVICES; for d in /dev/nvidia*; do test -c $d && echo DEV=$d; done; grep " /etc/vcuda" /proc/self/mounts; ls -l /etc/vcuda /etc/vcuda/usage; cat /dev/nvidiactl && echo READABLE';

export interface Shown {
  readonly libraryPath: string;
  readonly uuids: readonly string[];
  readonly devices: readonly string[];
  /** Mount options of /etc/vcuda and /etc/vcuda/usage. */
  readonly readOnly: Readonly<Record<string, boolean>>;
  readonly text: string;
}

export function readShown(text: string): Shown {
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  const mounts = [...text.matchAll(/^\S+ (\/etc\/vcuda\S*) \S+ (\S+)/gm)];
  return {
    libraryPath: value('LD'),
    uuids: value('UUID')
      .split(',')
      .filter((uuid) => uuid !== ''),
    devices: [...text.matchAll(/^DEV=(.*)$/gm)].map((match) => match[1] ?? ''),
    readOnly: Object.fromEntries(mounts.map((match) => [match[1] ?? '', (match[2] ?? '').split(',').includes('ro')])),
    text,
  };
}
