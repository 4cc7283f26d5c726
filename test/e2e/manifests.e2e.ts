import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { TestCluster } from './cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** API groups of component configuration files, which no API server knows. */
const CONFIGURATION = /\.config\.k8s\.io\//;

const cluster = new TestCluster();

interface Shipped {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly spec?: { readonly selector?: object };
}

/** A patch of the DaemonSet does not repeat its selector. */
function isPatch({ kind, spec }: Shipped): boolean {
  return kind === 'DaemonSet' && spec?.selector === undefined;
}

/** Every shipped file with objects for the API server. */
function manifests(): string[] {
  const below = readdirSync(join(ROOT, 'etc'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join(ROOT, 'etc', path),
  );
  return below
    .filter((path) => path.endsWith('.yaml'))
    .filter((path) => {
      const objects = parseAllDocuments(readFileSync(path, 'utf8')).map(
        (document) => document.toJS() as Shipped | null,
      );
      return objects.every(
        (object) => object?.kind !== undefined && !CONFIGURATION.test(object.apiVersion ?? '') && !isPatch(object),
      );
    });
}

/** The kinds that a server knows, as `apiVersion kind`. */
async function knownKinds(): Promise<ReadonlySet<string>> {
  const kinds = new Set<string>();
  for (const version of (await cluster.kubectl('api-versions')).split('\n')) {
    const path = version.includes('/') ? `/apis/${version}` : `/api/${version}`;
    const list = JSON.parse(await cluster.kubectl('get', '--raw', path)) as { resources: readonly { kind: string }[] };
    for (const { kind } of list.resources) kinds.add(`${version} ${kind}`);
  }
  return kinds;
}

function kindsIn(path: string): readonly string[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const { apiVersion, kind } = document.toJS() as { readonly apiVersion: string; readonly kind: string };
    return `${apiVersion} ${kind}`;
  });
}

const known = await knownKinds();

for (const path of manifests()) {
  test(`the API server accepts ${relative(ROOT, path)}`, async (t) => {
    const unknown = kindsIn(path).find((kind) => !known.has(kind));
    if (unknown !== undefined) {
      t.pass('is taken', { skip: `this server does not know ${unknown}` });
      return;
    }
    // Servers before 1.25 do not know the rules of custom resources and accept the rest of the definitions.
    const validate = /^kind: CustomResourceDefinition$/m.test(readFileSync(path, 'utf8')) ? ['--validate=false'] : [];
    t.match(await cluster.kubectl('apply', '--dry-run=server', ...validate, '-f', path), /\(server dry run\)/);
  });
}
