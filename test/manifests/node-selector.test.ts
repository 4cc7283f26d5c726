import { test } from 'tap';
import type { LabelRequirement } from '../../src/manifests/label-selector.js';
import { ANY_NODE, selectorKey, selects, type NodeSelector } from '../../src/manifests/node-selector.js';

const labels = { 'gpu-model': 'V100', zone: 'a', 'gpu-count': '8' };

function affinity(...requirements: LabelRequirement[]): NodeSelector {
  return { labels: {}, terms: [{ labels: requirements, fields: [] }] };
}

test('an empty selector matches every node', (t) => {
  t.ok(selects(ANY_NODE, 'n', labels));
  t.equal(selectorKey(ANY_NODE), '');
  t.end();
});

test('every label of nodeSelector has to be equal', (t) => {
  t.ok(selects({ labels: { zone: 'a', 'gpu-model': 'V100' }, terms: null }, 'n', labels));
  t.notOk(selects({ labels: { zone: 'a', 'gpu-model': 'T4' }, terms: null }, 'n', labels));
  t.notOk(selects({ labels: { missing: '' }, terms: null }, 'n', labels));
  t.notOk(
    selects({ labels: { toString: 'x' }, terms: null }, 'n', labels),
    'properties of Object.prototype are not labels',
  );
  t.end();
});

test('each operator of node affinity works as in Kubernetes', (t) => {
  const rows: [LabelRequirement, boolean][] = [
    [{ key: 'gpu-model', operator: 'In', values: ['T4', 'V100'] }, true],
    [{ key: 'gpu-model', operator: 'In', values: ['T4'] }, false],
    [{ key: 'missing', operator: 'In', values: ['T4'] }, false],
    [{ key: 'gpu-model', operator: 'NotIn', values: ['T4'] }, true],
    [{ key: 'gpu-model', operator: 'NotIn', values: ['V100'] }, false],
    [{ key: 'missing', operator: 'NotIn', values: ['V100'] }, true],
    [{ key: 'zone', operator: 'Exists', values: [] }, true],
    [{ key: 'missing', operator: 'Exists', values: [] }, false],
    [{ key: 'missing', operator: 'DoesNotExist', values: [] }, true],
    [{ key: 'zone', operator: 'DoesNotExist', values: [] }, false],
    [{ key: 'gpu-count', operator: 'Gt', values: ['4'] }, true],
    [{ key: 'gpu-count', operator: 'Gt', values: ['8'] }, false],
    [{ key: 'gpu-count', operator: 'Lt', values: ['9'] }, true],
    [{ key: 'zone', operator: 'Lt', values: ['9'] }, false],
    [{ key: 'missing', operator: 'Gt', values: ['1'] }, false],
    [{ key: 'zone', operator: 'Near', values: ['a'] }, false],
  ];
  for (const [requirement, expected] of rows) {
    t.equal(
      selects(affinity(requirement), 'n', labels),
      expected,
      `${requirement.key} ${requirement.operator} ${requirement.values.join()}`,
    );
  }
  t.end();
});

test('one matching term is enough, a term needs all its requirements, and an empty term matches no node', (t) => {
  const isV100: LabelRequirement = { key: 'gpu-model', operator: 'In', values: ['V100'] };
  const inZoneB: LabelRequirement = { key: 'zone', operator: 'In', values: ['b'] };
  t.notOk(selects(affinity(isV100, inZoneB), 'n', labels));
  t.ok(
    selects(
      {
        labels: {},
        terms: [
          { labels: [inZoneB], fields: [] },
          { labels: [isV100], fields: [] },
        ],
      },
      'n',
      labels,
    ),
  );
  t.notOk(selects({ labels: {}, terms: [{ labels: [], fields: [] }] }, 'n', labels));
  t.notOk(selects({ labels: {}, terms: [] }, 'n', labels));
  t.end();
});

test('matchFields names a node', (t) => {
  const byName: NodeSelector = {
    labels: {},
    terms: [{ labels: [], fields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }],
  };
  t.ok(selects(byName, 'n1', {}));
  t.notOk(selects(byName, 'n2', {}));
  t.end();
});

test('selectors with the same labels in another order have one key', (t) => {
  t.equal(
    selectorKey({ labels: { a: '1', b: '2' }, terms: null }),
    selectorKey({ labels: { b: '2', a: '1' }, terms: null }),
  );
  t.not(selectorKey({ labels: { a: '1' }, terms: null }), selectorKey({ labels: { a: '2' }, terms: null }));
  t.end();
});
