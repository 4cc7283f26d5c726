/** JSON schemas of Kubernetes' own kinds, from the sources that `npm run kubernetes -- build` has downloaded. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const MODULES = join(
  process.env['GOMODCACHE'] ?? join(process.env['GOPATH'] ?? join(homedir(), 'go'), 'pkg/mod'),
  'k8s.io',
);
const SWAGGER = 'api/openapi-spec/swagger.json';

interface Definition {
  properties?: Record<string, Definition>;
  additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

const sources = existsSync(MODULES)
  ? readdirSync(MODULES)
      .filter((name) => name.startsWith('kubernetes@') && existsSync(join(MODULES, name, SWAGGER)))
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  : [];

/** Reason why there are no schemas here, or false. */
export const noKubernetesSchemas =
  sources.length > 0 ? false : 'needs the sources of Kubernetes: npm run kubernetes -- build';

/** Writes a schema without unknown fields for each wanted kind; returns the location as kubeconform takes it. */
export function kubernetesSchemas(directory: string, wanted: ReadonlySet<string>): string {
  const { definitions } = JSON.parse(readFileSync(join(MODULES, sources.at(-1) ?? '', SWAGGER), 'utf8')) as {
    readonly definitions: Readonly<Record<string, Definition>>;
  };
  for (const definition of Object.values(definitions))
    if (definition.properties !== undefined) definition.additionalProperties ??= false;
  // Quantities and ports are numbers or strings.
  Object.assign(definitions, {
    'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: ['string', 'number'] },
    'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: ['string', 'integer'] },
  });
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions)) {
    if (kinds.length !== 1) continue;
    const [{ group, version, kind }] = kinds as [{ group: string; version: string; kind: string }];
    if (!wanted.has(kind)) continue;
    const parts = [kind, ...(group === '' ? [] : [group.split('.')[0]]), version];
    writeFileSync(
      join(directory, `${parts.join('-').toLowerCase()}.json`),
      JSON.stringify({ $ref: `#/definitions/${name}`, definitions: reachable(name, definitions) }),
    );
  }
  return join(directory, '{{ .ResourceKind }}{{ .KindSuffix }}.json');
}

/** The definitions that a definition refers to, and those that these refer to. */
function reachable(name: string, all: Readonly<Record<string, Definition>>): Record<string, Definition> {
  const found: Record<string, Definition> = {};
  const visit = (each: string): void => {
    const definition = all[each];
    if (definition === undefined || each in found) return;
    found[each] = definition;
    for (const [, next = ''] of JSON.stringify(definition).matchAll(/"#\/definitions\/([^"]+)"/g)) visit(next);
  };
  visit(name);
  return found;
}
