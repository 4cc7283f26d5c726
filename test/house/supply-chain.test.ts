import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Licences under which a package may ship with this project: permissive ones only. */
const PERMISSIVE = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'Python-2.0',
  'Unlicense',
]);

interface LockedPackage {
  readonly dev?: boolean;
  readonly link?: boolean;
  readonly license?: string;
  readonly integrity?: string;
}

const locked = Object.entries(
  (JSON.parse(read('package-lock.json')) as { packages: Record<string, LockedPackage> }).packages,
).filter(([path, { link }]) => path !== '' && link !== true);

/** By the lock file, or where that does not say by the package itself, which older ones write in other forms. */
function licenceOf(path: string, { license }: LockedPackage): string {
  if (license !== undefined) return license;
  const described = JSON.parse(read(`${path}/package.json`)) as {
    readonly license?: string | { readonly type?: string };
    readonly licenses?: readonly { readonly type?: string }[];
  };
  const stated =
    typeof described.license === 'string'
      ? described.license
      : (described.license?.type ?? described.licenses?.[0]?.type);
  if (stated !== undefined) return stated;
  const file = readdirSync(join(ROOT, path)).find((name) => /^(licen[cs]e|readme)/i.test(name));
  const text = file === undefined ? '' : read(`${path}/${file}`);
  return /Permission is hereby granted, free of charge/.test(text) ? 'MIT' : 'unknown';
}

/** `(A OR B)` is permissive where one of them is, `A AND B` where both are. */
function isPermissive(licence: string): boolean {
  return licence
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((one) => PERMISSIVE.has(one.trim())));
}

test('every package that ships has a permissive licence', (t) => {
  const shipped = locked.filter(([, { dev }]) => dev !== true);
  t.ok(shipped.length > 50);
  t.same(
    shipped
      .map(([path, entry]) => `${path}: ${licenceOf(path, entry)}`)
      .filter((line) => !isPermissive(line.split(': ')[1] ?? '')),
    [],
  );
  for (const licence of ['GPL-3.0', 'MIT AND LGPL-2.1', 'unknown', '']) t.equal(isPermissive(licence), false, licence);
  t.equal(isPermissive('(MIT OR GPL-2.0)'), true);
  t.end();
});

test('every package is locked by the hash of its content', (t) => {
  t.same(
    locked.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true).map(([path]) => path),
    [],
  );
  t.end();
});

interface Workload {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string };
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly {
          readonly name: string;
          /** A patch of another manifest names none. */
          readonly image?: string;
          readonly securityContext?: {
            readonly privileged?: boolean;
            readonly seccompProfile?: { readonly type?: string };
          };
        }[];
      };
    };
  };
}

const manifests = [
  'daemonset.yaml',
  ...['extender', 'plugin-proxy', 'quota'].flatMap((folder) =>
    readdirSync(join(ROOT, 'etc', folder))
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => `etc/${folder}/${name}`),
  ),
];

test('every container of the manifests has a seccomp profile, but for the agent, which is privileged', (t) => {
  let seen = 0;
  for (const path of manifests) {
    for (const document of parseAllDocuments(read(path))) {
      const { spec } = document.toJS() as Workload;
      for (const { name, image, securityContext } of spec?.template?.spec?.containers ?? []) {
        if (image === undefined) continue;
        seen += 1;
        // Kubernetes runs a privileged container without a profile, whatever it names.
        if (securityContext?.privileged === true) t.equal(path, 'daemonset.yaml', `${path} ${name} is privileged`);
        else t.equal(securityContext?.seccompProfile?.type, 'RuntimeDefault', `${path} ${name}`);
      }
    }
  }
  t.ok(seen >= 4, `${seen} containers`);
  t.end();
});
