import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';
import { TestCluster } from './cluster.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Of the configuration files of components: no API server knows them. */
const CONFIGURATION = /\.config\.k8s\.io\//;

const cluster = new TestCluster();

/** Every file of objects for the API server that we ship. */
function manifests(): string[] {
  const below = readdirSync(join(ROOT, 'etc'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join(ROOT, 'etc', path),
  );
  return [join(ROOT, 'daemonset.yaml'), ...below.filter((path) => path.endsWith('.yaml'))].filter((path) => {
    const objects = parseAllDocuments(readFileSync(path, 'utf8')).map(
      (document) => document.toJS() as { apiVersion?: string; kind?: string } | null,
    );
    return objects.every((object) => object?.kind !== undefined && !CONFIGURATION.test(object.apiVersion ?? ''));
  });
}

function versionsIn(path: string): string[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map(
    (document) => (document.toJS() as { apiVersion: string }).apiVersion,
  );
}

for (const path of manifests()) {
  test(`the API server takes ${relative(ROOT, path)}`, async (t) => {
    const known = new Set((await cluster.kubectl('api-versions')).split('\n'));
    const unknown = versionsIn(path).find((version) => !known.has(version));
    if (unknown !== undefined) {
      t.pass('is taken', { skip: `this server does not know ${unknown}` });
      return;
    }
    // The rules of custom resources are unknown to servers before 1.25, which take everything else of them.
    const validate = /^kind: CustomResourceDefinition$/m.test(readFileSync(path, 'utf8')) ? ['--validate=false'] : [];
    t.match(await cluster.kubectl('apply', '--dry-run=server', ...validate, '-f', path), /\(server dry run\)/);
  });
}
