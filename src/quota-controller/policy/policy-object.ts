import {
  DEFAULT_FAMILIES,
  typeProblem,
  type TypeFamily,
  declaredKind,
  type DeclaredKind,
  type DeclaredPods,
  type Evaluator,
  type PlacementRule,
  isStorage,
} from '../../quota/internal.js';
import type { Quantities } from '../../manifests/quantities.js';
import { resourceProblem } from '../../manifests/key.js';
import { readQuantity } from '../../manifests/quantity.js';
import { DEFAULT_CATALOG, type CardCatalog } from '../../manifests/gpu-resources.js';
import { list, record, text, type JsonRecord } from '../../kube/json.js';
import type { LabelSelector } from '../../manifests/label-selector.js';
import { readAmounts } from '../../kube/amounts.js';
import type { Condition } from '../../kube/condition.js';

/** Name of the only QuotaPolicy in effect. */
const POLICY_NAME = 'default';

/** The content of a QuotaPolicy: how workloads are read. */
export interface QuotaPolicy {
  readonly families: readonly TypeFamily[];
  readonly placement: readonly PlacementRule[];
  readonly catalog: CardCatalog;
  readonly strictTypes: boolean;
  readonly chargeSurge: boolean;
  /** Namespaces whose workloads must name a group; null for none. */
  readonly requireLabel: LabelSelector | null;
  readonly kinds: readonly Evaluator[];
  /** Consumers that the arbitrator creates for namespaces without one. */
  readonly consumers: readonly ConsumerTemplate[];
  /** Storage that Consumers share; no limit for a resource that is not named. */
  readonly storageCapacity: Quantities;
  /** Whether the arbitrator evicts pods beyond the quota of their group before pods within it. */
  readonly evictBeyondQuotaFirst: boolean;
  /** Half-life of the hours by which borrowers are weighed, milliseconds; null: they are not. */
  readonly borrowedHoursHalfLifeMs: number | null;
}

/** A Consumer for every selected namespace. */
export interface ConsumerTemplate {
  readonly namespaceSelector: LabelSelector;
  /** Spec of the Consumer; the API server validates it when the Consumer is created. */
  readonly spec: unknown;
}

/** A QuotaPolicy as the API server returns it. */
export interface PolicyObject {
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly policy: QuotaPolicy;
  /** Errors of parts that cannot be read; `policy` is without these parts. */
  readonly problems: readonly string[];
  readonly conditions: readonly Condition[];
}

/** The policy in effect without a QuotaPolicy. */
export const NO_POLICY: QuotaPolicy = {
  families: DEFAULT_FAMILIES,
  placement: [],
  catalog: DEFAULT_CATALOG,
  strictTypes: false,
  chargeSurge: false,
  requireLabel: null,
  kinds: [],
  consumers: [],
  storageCapacity: new Map(),
  evictBeyondQuotaFirst: false,
  borrowedHoursHalfLifeMs: null,
};

/** Reads a QuotaPolicy; null for one with another name, which has no effect. */
export function readPolicy(object: unknown): PolicyObject | null {
  const { metadata: meta, spec: written, status } = record(object);
  const metadata = record(meta);
  const name = text(metadata.name);
  if (name !== POLICY_NAME) return null;
  const spec = record(written);
  const problems: string[] = [];
  const families = readFamilies(spec, problems);
  const types = readTypes(spec, families, problems);
  const { requireLabel } = spec;
  return {
    name,
    uid: text(metadata.uid),
    generation: typeof metadata.generation === 'number' ? metadata.generation : 0,
    policy: {
      families,
      placement: placementOf(types, problems),
      catalog: {
        ...DEFAULT_CATALOG,
        ...Object.fromEntries(
          types.flatMap((type) => (type.memoryBytes === null ? [] : [[type.name, type.memoryBytes]])),
        ),
      },
      strictTypes: spec.strictTypes === true,
      chargeSurge: spec.surge === true,
      requireLabel: requireLabel === undefined ? null : record(record(requireLabel).namespaceSelector),
      kinds: readKinds(spec, problems),
      consumers: list(spec.consumers).map((value) => ({
        namespaceSelector: record(record(value).namespaceSelector),
        spec: record(record(value).spec),
      })),
      storageCapacity: readStorage(spec, problems),
      evictBeyondQuotaFirst: spec.evictBeyondQuotaFirst === true,
      borrowedHoursHalfLifeMs: readHalfLife(spec, problems),
    },
    problems,
    conditions: list(record(status).conditions) as readonly Condition[],
  };
}

/** Longest half-life: ten years. */
const MAX_HALF_LIFE_HOURS = 87_600;

function readHalfLife({ borrowedHours }: JsonRecord, problems: string[]): number | null {
  if (borrowedHours === undefined) return null;
  const { halfLifeHours } = record(borrowedHours);
  if (typeof halfLifeHours === 'number' && halfLifeHours > 0 && halfLifeHours <= MAX_HALF_LIFE_HOURS)
    return halfLifeHours * 3_600_000;
  problems.push(
    `spec.borrowedHours.halfLifeHours: expected more than 0 and at most ${MAX_HALF_LIFE_HOURS}, found ${JSON.stringify(halfLifeHours) ?? 'nothing'}`,
  );
  return null;
}

/** A type of the catalog. */
interface CatalogType {
  readonly name: string;
  readonly family: string;
  readonly memoryBytes: number | null;
  readonly nodeLabels: readonly Named[];
  readonly annotations: readonly Named[];
  readonly deviceClasses: readonly string[];
}

interface Named {
  readonly key: string;
  readonly values: readonly string[];
}

/**
 * The families of the policy and the default ones; a family of the policy replaces the default one of the same name.
 */
function readFamilies(spec: JsonRecord, problems: string[]): readonly TypeFamily[] {
  const own = list(spec.families).flatMap((value, index): readonly TypeFamily[] => {
    const { name: written, resources: all } = record(value);
    const [name, resources] = [text(written), list(all).map(text)];
    const at = `spec.families[${index}]`;
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
      problems.push(
        `${at}.name: "${name.slice(0, 80)}" is not a family name; expected lower-case letters, digits and -`,
      );
      return [];
    }
    const wrong = resources.find((resource) => resourceProblem(resource.replace(/\*$/, 'x')) !== null);
    if (wrong !== undefined || resources.length === 0) {
      problems.push(
        `${at}.resources: ${wrong === undefined ? 'expected at least one resource' : `"${wrong.slice(0, 80)}" is not a resource name`}`,
      );
      return [];
    }
    return [{ name, resources }];
  });
  return [...DEFAULT_FAMILIES.filter(({ name }) => !own.some((family) => family.name === name)), ...own];
}

function readTypes(spec: JsonRecord, families: readonly TypeFamily[], problems: string[]): readonly CatalogType[] {
  const seen = new Set<string>();
  return list(spec.types).flatMap((value, index): readonly CatalogType[] => {
    const written = record(value);
    const [name, family] = [text(written.name), text(written.family) || 'gpu'];
    const at = `spec.types[${index}]`;
    const wrong = [
      typeProblem(name),
      families.some((known) => known.name === family) ? null : `unknown family "${family}"`,
      seen.has(`${family}/${name}`) ? `${family}-type ${name} is defined twice` : null,
    ].find((problem) => problem !== null);
    if (wrong !== undefined) {
      problems.push(`${at}: ${wrong}`);
      return [];
    }
    seen.add(`${family}/${name}`);
    return [
      {
        name,
        family,
        memoryBytes: readMemory(written.memory, `${at}.memory`, problems),
        nodeLabels: readNamed(written.nodeLabels, `${at}.nodeLabels`, problems),
        annotations: readNamed(written.annotations, `${at}.annotations`, problems),
        deviceClasses: list(written.deviceClasses)
          .map(text)
          .filter((name) => name !== ''),
      },
    ];
  });
}

function readStorage(spec: JsonRecord, problems: string[]): Quantities {
  const { amounts, problems: unreadable } = readAmounts(spec.storageCapacity, 'down');
  const other = [...amounts.keys()].filter((resource) => !isStorage(resource));
  problems.push(...unreadable.map((problem) => `spec.storageCapacity: ${problem}`));
  problems.push(...other.map((resource) => `spec.storageCapacity: "${resource.slice(0, 80)}" is no storage`));
  return new Map([...amounts].filter(([resource]) => isStorage(resource)));
}

function readMemory(written: unknown, at: string, problems: string[]): number | null {
  if (written === undefined) return null;
  const amount = text(written);
  const read = readQuantity('memory', amount, 'down');
  if (read.ok && read.amount > 0 && Number.isSafeInteger(Number(read.amount))) return Number(read.amount);
  problems.push(
    `${at}: ${read.ok ? `"${amount}" is not a GPU memory size; expected a positive quantity such as 80Gi` : read.reason}`,
  );
  return null;
}

function readNamed(written: unknown, at: string, problems: string[]): readonly Named[] {
  return list(written).flatMap((value, index): readonly Named[] => {
    const { key, values } = record(value);
    const named = {
      key: text(key),
      values: list(values)
        .map(text)
        .filter((name) => name !== ''),
    };
    if (named.key !== '' && named.values.length > 0) return [named];
    problems.push(`${at}[${index}]: expected a key and its values`);
    return [];
  });
}

/** One rule per label and per annotation of a family, and one rule for its DeviceClasses. */
function placementOf(types: readonly CatalogType[], problems: string[]): readonly PlacementRule[] {
  const rules = new Map<string, { rule: PlacementRule; products: Record<string, string[]> }>();
  const add = (family: string, key: string, type: string, values: readonly string[], rule: Partial<PlacementRule>) => {
    const known = rules.get(`${family} ${key}`);
    const products = known?.products ?? {};
    rules.set(`${family} ${key}`, { rule: { family, nodeLabel: '', products, ...rule }, products });
    for (const value of values) {
      const other = Object.keys(products).find((each) => each !== type && products[each]?.includes(value) === true);
      if (other === undefined) (products[type] ??= []).push(value);
      else problems.push(`${key} ${value} names ${family}-type ${other} and ${family}-type ${type}; ${other} is used`);
    }
  };
  for (const { name, family, nodeLabels, annotations } of types) {
    for (const { key, values } of nodeLabels) add(family, `label ${key}`, name, values, { nodeLabel: key });
    for (const { key, values } of annotations) add(family, `annotation ${key}`, name, values, { annotation: key });
  }
  const families = [...new Set(types.map(({ family }) => family))];
  return [
    ...[...rules.values()].map(({ rule }) => rule),
    // Types without any placement belong to the catalog, too.
    ...families.map((family): PlacementRule => ({
      family,
      nodeLabel: '',
      products: {},
      deviceClasses: Object.fromEntries(
        types.filter((type) => type.family === family).map(({ name, deviceClasses }) => [name, deviceClasses]),
      ),
    })),
  ];
}

function readKinds(spec: JsonRecord, problems: string[]): readonly Evaluator[] {
  return list(spec.kinds).flatMap((value, index): readonly Evaluator[] => {
    const { apiGroup, kind, plural, pods, suspend, done } = record(value);
    const at = `spec.kinds[${index}]`;
    const declared: DeclaredKind = {
      apiGroup: text(apiGroup),
      kind: text(kind),
      plural: text(plural),
      pods: list(pods).map(readPods),
      ...(suspend === undefined ? {} : { suspend: text(suspend) }),
      ...(done === undefined
        ? {}
        : { done: { field: text(record(done).field), values: list(record(done).values).map(text) } }),
    };
    const wrong = kindProblem(declared);
    if (wrong === null) return [declaredKind(declared)];
    problems.push(`${at}: ${wrong}`);
    return [];
  });
}

function readPods(value: unknown): DeclaredPods {
  const { name, each, replicas, defaultReplicas, template } = record(value);
  return {
    template: text(template),
    ...(name === undefined ? {} : { name: text(name) }),
    ...(each === undefined ? {} : { each: text(each) }),
    ...(replicas === undefined ? {} : { replicas: text(replicas) }),
    ...(typeof defaultReplicas === 'number' ? { defaultReplicas } : {}),
  };
}

function kindProblem({ apiGroup, kind, plural, pods }: DeclaredKind): string | null {
  if (!/^[a-z0-9.-]+\.[a-z0-9.-]+$/.test(apiGroup))
    return `apiGroup "${apiGroup.slice(0, 80)}" is not an API group of custom resources; expected a domain name`;
  if (!/^[A-Z][A-Za-z0-9]*$/.test(kind)) return `kind "${kind.slice(0, 80)}" is not a kind; expected CamelCase`;
  if (!/^[a-z][a-z0-9]*$/.test(plural))
    return `plural "${plural.slice(0, 80)}" is not a plural resource name; expected lower-case letters and digits`;
  if (pods.length === 0) return 'pods: expected the paths of the pod templates';
  return pods.some(({ template }) => template === '') ? 'pods: every entry needs the path of a template' : null;
}
