import type { Json, ManifestReader } from './manifest.js';

/**
 * How nodes say what type they are: a type that is declared and another one that is asked for of the nodes contradict
 * each other.
 */
export interface PlacementRule {
  /** Family of types: `gpu`. */
  readonly family: string;
  /** Label of nodes: `nvidia.com/gpu.product`. */
  readonly nodeLabel: string;
  /** Annotation of pods that names wanted products, separated by commas: `nvidia.com/include-gpu-type`. */
  readonly annotation?: string | undefined;
  /** Values of the label by type: { T4: ['Tesla-T4'] }. Types that are not here are not compared. */
  readonly products: Readonly<Record<string, readonly string[]>>;
}

/** Why a pod that says it is of `type` asks for nodes of another one, or null. `template` is a PodTemplateSpec. */
export function placementProblem(
  reader: ManifestReader,
  template: Json,
  rule: PlacementRule,
  type: string,
): string | null {
  if (!Object.hasOwn(rule.products, type)) return null;
  const products = rule.products[type] as readonly string[];
  for (const asked of wanted(reader, template, rule)) {
    if (!asked.some((product) => products.includes(product))) {
      return `the workload is of ${rule.family}-type ${type}, but asks for ${rule.nodeLabel} ${asked.join(' or ')}`;
    }
  }
  return null;
}

/** Each entry is a list of products of which a node has to have one. */
function wanted(
  reader: ManifestReader,
  template: Json,
  { nodeLabel, annotation }: PlacementRule,
): readonly (readonly string[])[] {
  const spec = reader.at(template, 'spec');
  const selected = reader.at(spec, 'nodeSelector', nodeLabel);
  const annotated = annotation === undefined ? undefined : reader.at(template, 'metadata', 'annotations', annotation);
  const terms = reader.items(
    reader.at(spec, 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'),
    'nodeSelectorTerms',
  );
  // Terms are alternatives: a product is asked for only if each of them names one.
  const byTerm = terms.map((term) =>
    reader
      .items(reader.at(term, 'matchExpressions'), 'matchExpressions')
      .filter((expression) => reader.at(expression, 'key') === nodeLabel && reader.at(expression, 'operator') === 'In')
      .flatMap((expression) =>
        reader.items(reader.at(expression, 'values'), 'values').map((value) => reader.text(value, 'values')),
      ),
  );
  return [
    ...(typeof selected === 'string' ? [[selected]] : []),
    ...(typeof annotated === 'string' ? [annotated.split(',').map((product) => product.trim())] : []),
    ...(byTerm.length > 0 && byTerm.every((values) => values.length > 0) ? [byTerm.flat()] : []),
  ];
}
