import { hasCondition, type Evaluator, type TemplatedPods } from './evaluator.js';
import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

const MIB = 2 ** 20;
/** Minimum of the memory overhead that Spark adds to the heap of a process. */
const MIN_OVERHEAD_BYTES = 384 * MIB;
const OVERHEAD = { jvm: 0.1, other: 0.4 };
/** Memory without a configured size. */
const DEFAULT_MEMORY_BYTES = 1024 * MIB;
/** Units of JVM sizes such as `512m`: powers of 1024; MiB without a unit. */
const UNITS: Readonly<Record<string, number>> = { b: 1, k: 1024, m: MIB, g: 1024 * MIB, t: MIB * MIB };

/** The Spark operator's application: one driver and the maximum number of executors. */
const SPARK_APPLICATION: Evaluator = {
  apiGroup: 'sparkoperator.k8s.io',
  kind: 'SparkApplication',
  resource: 'sparkapplications.sparkoperator.k8s.io',
  charges: true,
  pods(reader, object) {
    const spec = reader.at(object, 'spec');
    const scaling = reader.at(spec, 'dynamicAllocation');
    const count = (value: Json, path: string, absent: number): number => reader.count(value, path, absent);
    const instances = count(reader.at(spec, 'executor', 'instances'), 'spec.executor.instances', 1);
    const most = reader.flag(reader.at(scaling, 'enabled'))
      ? count(reader.at(scaling, 'maxExecutors'), 'spec.dynamicAllocation.maxExecutors', instances)
      : instances;
    const isSuspended = reader.flag(reader.at(spec, 'suspend'));
    return [
      { name: 'driver', count: isSuspended ? 0 : 1, ...podOf(reader, spec, 'driver') },
      { name: 'executor', count: isSuspended ? 0 : Math.max(instances, most), ...podOf(reader, spec, 'executor') },
    ];
  },
  // Executors that end while the driver runs are replaced.
  isTerminal(reader, object) {
    const state = reader.text(
      reader.at(object, 'status', 'applicationState', 'state'),
      'status.applicationState.state',
    );
    const restart =
      reader.text(reader.at(object, 'spec', 'restartPolicy', 'type'), 'spec.restartPolicy.type') || 'Never';
    return (
      ['COMPLETED', 'FAILED'].includes(state) ||
      // The driver has ended, and is not started again.
      (state === 'SUCCEEDING' && restart !== 'Always') ||
      (state === 'FAILING' && restart === 'Never') ||
      hasCondition(reader, object, ['Completed', 'Failed'])
    );
  },
};

/** The pod of a role: its template, with the role's resources for the Spark container. */
function podOf(reader: ManifestReader, spec: Json, role: string): Pick<TemplatedPods, 'template' | 'path'> {
  const path = `spec.${role}`;
  const at = reader.at(spec, role);
  const template = reader.at(at, 'template');
  const own = reader.at(template, 'spec');
  const cores = reader.at(at, 'coreRequest') ?? reader.at(at, 'cores') ?? 1;
  const limit = reader.at(at, 'coreLimit');
  const memory = memoryOf(reader, spec, at, path);
  const gpu = reader.text(reader.at(at, 'gpu', 'name'), `${path}.gpu.name`);
  const gpus = gpu === '' ? {} : { [gpu]: reader.at(at, 'gpu', 'quantity') ?? 1 };
  const containers = reader.items(reader.at(own, 'containers'), `${path}.template.spec.containers`);
  const [, ...others] = containers;
  const nodeSelector = reader.at(at, 'nodeSelector') ?? reader.at(spec, 'nodeSelector');
  const affinity = reader.at(at, 'affinity');
  return {
    path,
    template: {
      ...(template as object | undefined),
      spec: {
        ...(own as object | undefined),
        ...(nodeSelector === undefined ? {} : { nodeSelector }),
        ...(affinity === undefined ? {} : { affinity }),
        initContainers: reader.at(at, 'initContainers') ?? reader.at(own, 'initContainers'),
        containers: [
          {
            name: `spark-${role}`,
            resources: {
              requests: { cpu: cores, memory, ...gpus },
              limits: { ...(limit === undefined ? {} : { cpu: limit }), memory, ...gpus },
            },
          },
          ...others,
          ...reader.items(reader.at(at, 'sidecars'), `${path}.sidecars`),
        ],
      },
    },
  };
}

/** Heap and memory overhead in bytes. */
function memoryOf(reader: ManifestReader, spec: Json, role: Json, path: string): number {
  const heap = bytesOf(reader, reader.at(role, 'memory'), `${path}.memory`) ?? DEFAULT_MEMORY_BYTES;
  const overhead = bytesOf(reader, reader.at(role, 'memoryOverhead'), `${path}.memoryOverhead`);
  if (overhead !== null) return heap + overhead;
  const type = reader.text(reader.at(spec, 'type'), 'spec.type');
  const given = Number(reader.text(reader.at(spec, 'memoryOverheadFactor'), 'spec.memoryOverheadFactor') || NaN);
  const factor = given >= 0 ? given : type === 'Python' || type === 'R' ? OVERHEAD.other : OVERHEAD.jvm;
  return heap + Math.max(MIN_OVERHEAD_BYTES, Math.ceil(heap * factor));
}

function bytesOf(reader: ManifestReader, value: Json, path: string): number | null {
  const text = reader.text(value, path).trim().toLowerCase();
  if (text === '') return null;
  const [, amount = '', unit = 'm'] = /^(\d+(?:\.\d+)?)([bkmgt])?(?:i?b)?$/.exec(text) ?? [];
  if (amount !== '') return Math.ceil(Number(amount) * (UNITS[unit] ?? MIB));
  reader.problems.push(`${path} is not a memory size; expected a JVM size such as 512m`);
  return null;
}

/** Kinds of the Spark operator. */
export const SPARK_KINDS: readonly Evaluator[] = [SPARK_APPLICATION];
