import type { Json, ManifestReader } from '../../manifests/manifest-reader.js';

/** Maps placement to types of a family: node label values of each type, and other fields of a pod that select types. */
export interface PlacementRule {
  /** Family of the types, such as `gpu`. */
  readonly family: string;
  /** Node label with the product, such as `nvidia.com/gpu.product`. */
  readonly nodeLabel: string;
  /** Pod annotation with wanted products, separated by commas: `nvidia.com/include-gpu-type`. */
  readonly annotation?: string | undefined;
  /**
   * Label values by type: { T4: ['Tesla-T4'] }; a trailing `*` matches any suffix. Types that are missing here are not
   * compared.
   */
  readonly products: Readonly<Record<string, readonly string[]>>;
  /** DeviceClasses of claims, by type. */
  readonly deviceClasses?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** Labels of a node by name; undefined for an unknown node. */
export type NodeLabels = (node: string) => Readonly<Record<string, string>> | undefined;

/** The types of a family that the placement of a pod allows. */
export interface PlacedTypes {
  /** Types of the catalog, in its order. */
  readonly types: readonly string[];
  /** The pod's request as text: `nvidia.com/gpu.product NVIDIA-A100-SXM4-80GB`. */
  readonly asked: string;
}

/** Input beside the template. */
export interface PlacementContext {
  /** For pods that select a node by `nodeName`, host name label or node affinity. */
  readonly nodeLabels?: NodeLabels | undefined;
  /** False for a bound pod: the scheduler chose its node. */
  readonly readsNodeName?: boolean | undefined;
  /** DeviceClasses in the pod's claims. */
  readonly deviceClasses?: readonly string[] | undefined;
}

/** A constraint of a pod on nodes: the types that it allows, and its text. */
interface Constraint {
  readonly allows: (type: string) => boolean;
  readonly asked: string;
}

const HOST_NAME = 'kubernetes.io/hostname';

/** The types of `family` that the placement of a pod allows; null if it does not constrain them. */
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

/** The types of a family in the rules. */
export function typesOf(rules: readonly PlacementRule[], family: string): readonly string[] {
  const own = rules.filter((rule) => rule.family === family);
  return [...new Set(own.flatMap((rule) => [...Object.keys(rule.products), ...Object.keys(rule.deviceClasses ?? {})]))];
}

/** The catalog type that equals `type` or contains it (`A100` for `A100.40g`); null for none. */
export function knownType(types: readonly string[], type: string): string | null {
  for (let name = type; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.'))))
    if (types.includes(name)) return name;
  return null;
}

/** The type of `family` of a node with these labels; null if no rule matches. */
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

/** Terms are alternatives: they constrain types only if each of them does. */
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
