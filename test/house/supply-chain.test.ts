import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Licences under which a package may ship with this project: only permissive ones. */
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

/** From the lock file, or else from the package itself, where older packages use other forms. */
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

test('every shipped package has a permissive licence', (t) => {
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

test('the lock file pins every package by its hash', (t) => {
  t.same(
    locked.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true).map(([path]) => path),
    [],
  );
  t.end();
});

interface SecurityContext {
  readonly privileged?: boolean;
  readonly seccompProfile?: { readonly type?: string };
}

interface PodSpec {
  readonly securityContext?: SecurityContext;
  readonly containers?: readonly {
    readonly name: string;
    /** A patch of another manifest names no image. */
    readonly image?: string;
    readonly securityContext?: SecurityContext;
  }[];
}

/** Every object of a manifest that has containers: pods and pod templates. */
function podSpecsIn(value: unknown): readonly PodSpec[] {
  if (typeof value !== 'object' || value === null) return [];
  const { containers } = value as PodSpec;
  return [...(Array.isArray(containers) ? [value as PodSpec] : []), ...Object.values(value).flatMap(podSpecsIn)];
}

const manifests = readdirSync(join(ROOT, 'etc'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => `etc/${name}`);

test('every container of the manifests has a seccomp profile, except the privileged agent', (t) => {
  let seen = 0;
  for (const path of manifests) {
    for (const document of parseAllDocuments(read(path))) {
      for (const { securityContext: ofPod, containers = [] } of podSpecsIn(document.toJS())) {
        for (const { name, image, securityContext } of containers) {
          if (image === undefined) continue;
          seen += 1;
          const profile = (securityContext?.seccompProfile ?? ofPod?.seccompProfile)?.type;
          // Kubernetes runs a privileged container without a profile, whatever it names.
          if (securityContext?.privileged === true)
            t.equal(path, 'etc/agent/daemonset.yaml', `${path} ${name} is privileged`);
          else t.equal(profile, 'RuntimeDefault', `${path} ${name}`);
        }
      }
    }
  }
  t.ok(seen >= 7, `${seen} containers`);
  t.end();
});

interface Role {
  readonly kind?: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

test('roles of their own may change webhook configurations, each those of one program', (t) => {
  const found = manifests
    .flatMap((path) => parseAllDocuments(read(path)).map((document) => document.toJS() as Role | null))
    .flatMap((role) => (role?.rules ?? []).map((rule) => ({ name: role?.metadata.name, ...rule })))
    .filter(({ apiGroups = [] }) => apiGroups.some((group) => ['admissionregistration.k8s.io', '*'].includes(group)))
    .map(({ name, resourceNames, verbs }) => ({ name, resourceNames, verbs }));
  t.same(
    found.sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1)),
    ['gpu-manager-claims', 'gpu-manager-quota'].map((name) => ({
      name: `${name}-registration`,
      resourceNames: [name],
      verbs: ['get', 'update'],
    })),
  );
  t.end();
});

test('the Dockerfile names base images by digest', (t) => {
  const stages = new Set<string>();
  const bases = [...read('Dockerfile').matchAll(/^FROM (?:--\S+ )?(\S+)(?: AS (\S+))?$/gim)];
  for (const [line, base = '', stage] of bases) {
    if (!stages.has(base)) t.match(base, /^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/, line);
    if (stage !== undefined) stages.add(stage);
  }
  t.ok(bases.length >= 3, `${bases.length} stages`);
  for (const [, from = ''] of read('Dockerfile').matchAll(/^COPY --from=(\S+)/gim)) t.ok(stages.has(from), from);
  t.end();
});

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<
      string,
      {
        readonly permissions?: Readonly<Record<string, string>>;
        readonly steps: readonly { readonly uses?: string; readonly run?: string; readonly with?: object }[];
      }
    >
  >;
}

const workflowOf = (name: string): Workflow => parse(read(`.github/workflows/${name}`)) as Workflow;

test('workflows pin actions by commit with the version beside it, and have only read permission unless a job states more', (t) => {
  for (const name of readdirSync(join(ROOT, '.github/workflows'))) {
    t.same(workflowOf(name).permissions, { contents: 'read' }, name);
    for (const [, action = ''] of read(`.github/workflows/${name}`).matchAll(/uses: (.+)$/gm))
      t.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, `${name}: ${action}`);
  }
  t.end();
});

test('containers of workflows are named by digest, with the version beside it', (t) => {
  const images = readdirSync(join(ROOT, '.github/workflows')).flatMap((name) =>
    [...read(`.github/workflows/${name}`).matchAll(/^ +(?:image|container): +(\S+)/gmu)].map(([, image]) => image),
  );
  t.ok(images.length > 0);
  for (const image of images) t.match(image, /^[\w./-]+:\d[\w.-]+@sha256:[0-9a-f]{64}$/u);
  t.end();
});

test('a release checks the signatures of packages before the build, and attests the provenance of all artifacts', (t) => {
  const { release } = workflowOf('release.yml').jobs;
  const steps = release?.steps ?? [];
  const at = (pattern: RegExp): number => steps.findIndex(({ uses = '', run = '' }) => pattern.test(uses + run));
  const [install, audit, build] = [at(/^npm ci$/), at(/^npm audit signatures$/), at(/^npm run release --/)];
  t.ok(0 <= install && install < audit && audit < build, `${install} ${audit} ${build}`);
  const image = read('scripts/release-image');
  t.match(image, /docker buildx build .*--provenance=mode=max --sbom=true/);
  t.notMatch(image, /--build-arg/, 'no option replaces the digests');
  const attested = steps.filter(({ uses = '' }) => uses.startsWith('actions/attest-build-provenance@'));
  t.match(
    attested.map((step) => step.with),
    [{ 'subject-digest': /digest/, 'push-to-registry': true }, { 'subject-path': /\.tgz/ }],
  );
  t.match(release?.permissions, { 'id-token': 'write', attestations: 'write', contents: 'write' });
  t.end();
});
