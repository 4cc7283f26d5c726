import type { Json, ManifestReader } from './manifest.js';

/**
 * How placement names types of a family: the values of a node label that belong to each type, and what else of a pod
 * says which of them it wants.
 */
export interface PlacementRule {
  /** Family of types: `gpu`. */
  readonly family: string;
  /** Label of nodes: `nvidia.com/gpu.product`. */
  readonly nodeLabel: string;
  /** Annotation of pods that names wanted products, separated by commas: `nvidia.com/include-gpu-type`. */
  readonly annotation?: string | undefined;
  /**
   * Values of the label by type: { T4: ['Tesla-T4'] }; one that ends in `*` stands for all that begin so. Types that
   * are not here are not compared.
   */
  readonly products: Readonly<Record<string, readonly string[]>>;
  /** DeviceClasses of claims by type. */
  readonly deviceClasses?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** Labels of a node by its name; undefined for a node that is not known. */
export type NodeLabels = (node: string) => Readonly<Record<string, string>> | undefined;

/** Which types of a family the placement of a pod leaves possible. */
export interface PlacedTypes {
  /** Types of the catalog, in its order. */
  readonly types: readonly string[];
  /** What the pod asks for, in words: `nvidia.com/gpu.product NVIDIA-A100-SXM4-80GB`. */
  readonly asked: string;
}

/** What is looked at beside the template. */
export interface PlacementContext {
  /** Of pods that name their node: by `nodeName`, by the label of the host name, by a field of node affinity. */
  readonly nodeLabels?: NodeLabels | undefined;
  /** False of a pod that the scheduler has bound: its node was not asked for. */
  readonly readsNodeName?: boolean | undefined;
  /** DeviceClasses that the pod claims devices of. */
  readonly deviceClasses?: readonly string[] | undefined;
}

/** One thing that a pod says about nodes: which types it leaves possible, and in which words. */
interface Constraint {
  readonly allows: (type: string) => boolean;
  readonly asked: string;
}

const HOST_NAME = 'kubernetes.io/hostname';

/** The types of `family` that the placement of a pod leaves possible; null where it says nothing about them. */
export function placedTypes(
  reader: ManifestReader,
  template: Json,
  rules: readonly PlacementRule[],
  family: string,
  context: PlacementContext = {},
): PlacedTypes | null {
  const own = rules.filter((rule) => rule.family === family);
  const constraints = own.flatMap((rule) => constraintsOf(reader, template, rule, context));
  if (constraints.length === 0) return null;
  return {
    types: typesOf(own, family).filter((type) => constraints.every(({ allows }) => allows(type))),
    asked: [...new Set(constraints.map(({ asked }) => asked))].join(', '),
  };
}

/** The types of a family that the rules know. */
export function typesOf(rules: readonly PlacementRule[], family: string): readonly string[] {
  const own = rules.filter((rule) => rule.family === family);
  return [...new Set(own.flatMap((rule) => [...Object.keys(rule.products), ...Object.keys(rule.deviceClasses ?? {})]))];
}

/** The type of the catalog that `type` is, or is a part of (`A100.40g` of `A100`); null where there is none. */
export function knownType(types: readonly string[], type: string): string | null {
  for (let name = type; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.'))))
    if (types.includes(name)) return name;
  return null;
}

/** The type of `family` that a node with these labels has; null where the rules do not say. */
export function typeOfNode(
  rules: readonly PlacementRule[],
  family: string,
  labels: Readonly<Record<string, string>>,
): string | null {
  for (const { family: ruled, nodeLabel, products } of rules) {
    const value = Object.hasOwn(labels, nodeLabel) ? labels[nodeLabel] : undefined;
    if (ruled !== family || value === undefined) continue;
    const found = Object.keys(products).find((type) => isProduct(products[type] ?? [], value));
    if (found !== undefined) return found;
  }
  return null;
}

function constraintsOf(
  reader: ManifestReader,
  template: Json,
  rule: PlacementRule,
  { nodeLabels, readsNodeName = true, deviceClasses = [] }: PlacementContext,
): readonly Constraint[] {
  const spec = reader.at(template, 'spec');
  const { nodeLabel, annotation } = rule;
  const selected = reader.at(spec, 'nodeSelector', nodeLabel);
  const annotated = annotation === undefined ? undefined : reader.at(template, 'metadata', 'annotations', annotation);
  const isOneOf = (label: string, values: readonly string[]): Constraint => ({
    allows: (type) => values.some((value) => isProduct(rule.products[type] ?? [], value)),
    asked: `${label} ${values.join(' or ')}`,
  });
  const nodes = [
    ...(readsNodeName ? [reader.at(spec, 'nodeName')] : []),
    reader.at(spec, 'nodeSelector', HOST_NAME),
  ].flatMap((node) => (typeof node === 'string' && node !== '' ? [[node]] : []));
  const named = (hosts: readonly string[]): readonly Constraint[] => {
    const values = hosts.map((host) => nodeLabels?.(host)?.[nodeLabel]);
    const known = values.filter((value) => value !== undefined);
    return known.length === 0 || known.length < values.length
      ? []
      : [isOneOf(`node ${hosts.join(' or ')} of ${nodeLabel}`, known)];
  };
  const classes = Object.entries(rule.deviceClasses ?? {});
  return [
    ...(typeof selected === 'string' ? [isOneOf(nodeLabel, [selected])] : []),
    ...(typeof annotated === 'string' ? [isOneOf(annotation ?? '', listed(annotated))] : []),
    ...nodes.flatMap(named),
    ...affinityOf(reader, spec, rule, isOneOf, named),
    ...deviceClasses
      .filter((name) => classes.some(([, names]) => names.includes(name)))
      .map((name) => ({
        allows: (type: string) => (rule.deviceClasses?.[type] ?? []).includes(name),
        asked: `DeviceClass ${name}`,
      })),
  ];
}

/** Terms are alternatives: together they say something only if each of them does. */
function affinityOf(
  reader: ManifestReader,
  spec: Json,
  rule: PlacementRule,
  isOneOf: (label: string, values: readonly string[]) => Constraint,
  named: (hosts: readonly string[]) => readonly Constraint[],
): readonly Constraint[] {
  const terms = reader.items(
    reader.at(spec, 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'),
    'nodeSelectorTerms',
  );
  const alternatives = terms.map((term): readonly Constraint[] => {
    const requirements = [
      ...reader.items(reader.at(term, 'matchExpressions'), 'matchExpressions'),
      ...reader.items(reader.at(term, 'matchFields'), 'matchFields'),
    ];
    return requirements.flatMap((requirement): readonly Constraint[] => {
      const key = reader.at(requirement, 'key');
      const operator = reader.at(requirement, 'operator');
      const values = reader
        .items(reader.at(requirement, 'values'), 'values')
        .flatMap((value) => (typeof value === 'string' ? [value] : []));
      if ((key === HOST_NAME || key === 'metadata.name') && operator === 'In') return named(values);
      if (key !== rule.nodeLabel) return [];
      if (operator === 'In') return [isOneOf(rule.nodeLabel, values)];
      if (operator === 'NotIn')
        return [
          {
            allows: (type) => !(rule.products[type] ?? []).every((product) => values.includes(product)),
            asked: `${rule.nodeLabel} not ${values.join(' or ')}`,
          },
        ];
      return operator === 'DoesNotExist' ? [{ allows: () => false, asked: `no ${rule.nodeLabel}` }] : [];
    });
  });
  if (alternatives.length === 0 || alternatives.some((constraints) => constraints.length === 0)) return [];
  return [
    {
      allows: (type) => alternatives.some((constraints) => constraints.every(({ allows }) => allows(type))),
      asked: alternatives.map((constraints) => constraints.map(({ asked }) => asked).join(' and ')).join(' or '),
    },
  ];
}

function isProduct(products: readonly string[], value: string): boolean {
  return products.some((product) =>
    product.endsWith('*') ? value.startsWith(product.slice(0, -1)) : value === product,
  );
}

function listed(text: string): readonly string[] {
  return text.split(',').map((name) => name.trim());
}
