import { test } from 'tap';
import { readManifests } from '../../src/quota-command/manifest-file.js';
import { readTree } from '../../src/quota-command/tree-file.js';

const namesOf = (text: string): unknown => {
  const read = readTree(text);
  return read.ok ? read.groups.map(({ name, parent }) => `${name}<${parent ?? ''}`) : read.problems;
};

test('a tree file nests groups, names their parents, or holds custom resources', (t) => {
  t.same(
    namesOf(
      'groups: [{name: a, hard: {}, children: [{name: b, hard: {pods: 1}, children: [{name: c, hard: {}}]}]}, {name: d, hard: {}}]',
    ),
    ['a<', 'b<a', 'c<b', 'd<'],
  );
  t.same(
    namesOf('groups: [{name: c, parent: b, hard: {}}, {name: b, parent: a, hard: {}}, {name: a, hard: {}}]'),
    ['a<', 'b<a', 'c<b'],
    'parents first, in any order of the file',
  );
  t.same(
    namesOf(`
apiVersion: example.com/v1
kind: BizGroupResourceQuota
metadata: { name: b, uid: x }
spec: { parentBizGroup: a, hard: { limits.cpu: 1 } }
status: { used: { limits.cpu: 0 } }
---
kind: BizGroupResourceQuota
metadata: { name: a }
spec: { hard: { limits.cpu: 2 } }
`),
    ['a<', 'b<a'],
  );
  t.same(namesOf(''), []);
  t.end();
});

test('all errors of a tree are reported', (t) => {
  t.same(
    namesOf('groups: [{name: a, parent: c, hard: {}}, {name: b, parent: a, hard: {}}, {name: c, parent: b, hard: {}}]'),
    ['parents form a cycle: a below c below b below a'],
  );
  t.same(namesOf('groups: [{name: a, hard: {}, children: [{name: b, parent: x, hard: {}}]}]'), [
    'b: parent is x, but the group is nested below a',
  ]);
  t.match(namesOf('groups: [{name: a, hard: {}, hart: {}}]'), [/hart/]);
  t.match(namesOf('groups: [{name: 7, hard: {}}, {name: a, hard: [1]}]'), [/groups.0.name/, /groups.1.hard/]);
  t.match(namesOf('groups: 1\n---\nnothing: 2'), [/document 1: groups/, /document 2/]);
  t.match(namesOf('groups: [\n'), [/./]);
  t.match(
    namesOf(
      'a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]',
    ),
    [/./],
    'a recursive alias',
  );
  t.same(namesOf(`# ${'x'.repeat(4 << 20)}`), ['longer than 3145728 bytes']);
  t.end();
});

test('manifests may be documents and lists, in YAML or JSON', (t) => {
  t.same(readManifests('kind: A\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n---\n'), {
    ok: true,
    manifests: [{ kind: 'A' }, { kind: 'B' }, { kind: 'C' }],
  });
  t.same(readManifests('{"kind": "A"}'), { ok: true, manifests: [{ kind: 'A' }] });
  t.match(readManifests('{'), { ok: false });
  t.end();
});
