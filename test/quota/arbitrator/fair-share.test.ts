import { test } from 'tap';
import { fairShares, type ShareRequest } from '../../../src/quota/arbitrator/index.js';
import { inThings, things } from './quantities.js';

type Amounts = Readonly<Record<string, number>>;

/** A consumer of the tables below. */
interface Row {
  readonly asks: Amounts;
  readonly hard?: Amounts;
  readonly reserved?: Amounts;
  readonly weight?: number;
  readonly isSystem?: true;
}

interface Vector {
  readonly id: string;
  readonly says: string;
  readonly cluster: Amounts;
  readonly rows: Readonly<Record<string, Row>>;
  readonly expected: Readonly<Record<string, Amounts>>;
  readonly lendReserved?: true;
  readonly notGuaranteed?: readonly string[];
}

const MUCH = 1000;

const VECTORS: readonly Vector[] = [
  {
    id: 'D01',
    says: 'the example of the DRF paper: both get two thirds of their dominant resource',
    cluster: { cpu: 9, memory: 18 },
    rows: { a: { asks: { cpu: MUCH, memory: 4 * MUCH } }, b: { asks: { cpu: 3 * MUCH, memory: MUCH } } },
    expected: { a: { cpu: 3, memory: 12 }, b: { cpu: 6, memory: 2 } },
  },
  {
    id: 'D03',
    says: 'a single consumer gets everything',
    cluster: { cpu: 2, memory: 2 },
    rows: { c1: { asks: { cpu: 2, memory: 2 } } },
    expected: { c1: { cpu: 2, memory: 2 } },
  },
  {
    id: 'D04',
    says: 'a second consumer gets its share',
    cluster: { cpu: 2, memory: 2 },
    rows: { c1: { asks: { cpu: 2, memory: 2 } }, c2: { asks: { cpu: 1, memory: 1 } } },
    expected: { c1: { cpu: 1, memory: 1 }, c2: { cpu: 1, memory: 1 } },
  },
  {
    id: 'D05',
    says: 'the fair share of a consumer without a request is nothing',
    cluster: { cpu: 2, memory: 2 },
    rows: { c1: { asks: { cpu: 2, memory: 2 } }, c2: { asks: {} } },
    expected: { c1: { cpu: 2, memory: 2 }, c2: {} },
  },
  {
    id: 'D06',
    says: 'a small request is met, and the other consumer gets the rest',
    cluster: { cpu: 10 },
    rows: { a: { asks: { cpu: 2 } }, b: { asks: { cpu: 100 } } },
    expected: { a: { cpu: 2 }, b: { cpu: 8 } },
  },
  {
    id: 'D07',
    says: 'no consumer gets more than its limit',
    cluster: { cpu: 10 },
    rows: { a: { asks: { cpu: 100 }, hard: { cpu: 3 } }, b: { asks: { cpu: 100 } } },
    expected: { a: { cpu: 3 }, b: { cpu: 7 } },
  },
  {
    id: 'D08',
    says: 'capacity beyond all limits stays idle',
    cluster: { cpu: 10 },
    rows: { a: { asks: { cpu: 100 }, hard: { cpu: 3 } }, b: { asks: { cpu: 4 } } },
    expected: { a: { cpu: 3 }, b: { cpu: 4 } },
  },
  {
    id: 'D09',
    says: 'a reservation is kept without a request',
    cluster: { cpu: 10 },
    rows: { a: { asks: {}, reserved: { cpu: 4 } }, b: { asks: { cpu: 100 } } },
    expected: { a: { cpu: 4 }, b: { cpu: 6 } },
  },
  {
    id: 'D10',
    says: 'a reservation without a request is lent if the policy says so',
    cluster: { cpu: 10 },
    lendReserved: true,
    rows: { a: { asks: {}, reserved: { cpu: 4 } }, b: { asks: { cpu: 100 } } },
    expected: { a: {}, b: { cpu: 10 } },
  },
  {
    id: 'D11',
    says: 'a reservation beyond the fair share is kept, too',
    cluster: { cpu: 10 },
    rows: { a: { asks: { cpu: 10 }, reserved: { cpu: 8 } }, b: { asks: { cpu: 10 } } },
    expected: { a: { cpu: 8 }, b: { cpu: 2 } },
  },
  {
    id: 'D12',
    says: 'a reservation within the fair share changes nothing',
    cluster: { cpu: 10 },
    rows: { a: { asks: { cpu: 10 }, reserved: { cpu: 2 } }, b: { asks: { cpu: 10 } } },
    expected: { a: { cpu: 5 }, b: { cpu: 5 } },
  },
  {
    id: 'D13',
    says: 'shares follow weights',
    cluster: { cpu: 10 },
    rows: { app: { asks: { cpu: 100 }, weight: 40 }, bigdata: { asks: { cpu: 100 }, weight: 60 } },
    expected: { app: { cpu: 4 }, bigdata: { cpu: 6 } },
  },
  {
    id: 'D14',
    says: 'reservations beyond the capacity are scaled down in proportion',
    cluster: { cpu: 6 },
    notGuaranteed: ['cpu'],
    rows: { a: { asks: { cpu: 10 }, reserved: { cpu: 6 } }, b: { asks: { cpu: 10 }, reserved: { cpu: 3 } } },
    expected: { a: { cpu: 4 }, b: { cpu: 2 } },
  },
  {
    id: 'D15',
    says: 'system consumers are served first',
    cluster: { cpu: 10 },
    rows: { 'kube-system': { asks: { cpu: 3 }, isSystem: true }, a: { asks: { cpu: 100 } }, b: { asks: { cpu: 100 } } },
    expected: { 'kube-system': { cpu: 3 }, a: { cpu: 3.5 }, b: { cpu: 3.5 } },
  },
  {
    id: 'D16',
    says: 'small requests are met first',
    cluster: { cpu: 12 },
    rows: { a: { asks: { cpu: 2 } }, b: { asks: { cpu: 4 } }, c: { asks: { cpu: 20 } } },
    expected: { a: { cpu: 2 }, b: { cpu: 4 }, c: { cpu: 6 } },
  },
  {
    id: 'D17',
    says: 'consumers of different resources do not affect each other',
    cluster: { cpu: 10, gpu: 4 },
    rows: { a: { asks: { cpu: 100 } }, b: { asks: { gpu: 100 } } },
    expected: { a: { cpu: 10 }, b: { gpu: 4 } },
  },
  {
    id: 'D18',
    says: 'an exhausted resource stops only the consumers that need it',
    cluster: { cpu: 10, gpu: 4 },
    rows: { a: { asks: { gpu: 4 } }, b: { asks: { gpu: 4 } }, c: { asks: { cpu: 10 } } },
    expected: { a: { gpu: 2 }, b: { gpu: 2 }, c: { cpu: 10 } },
  },
];

for (const { id, says, cluster, rows, expected, lendReserved, notGuaranteed = [] } of VECTORS) {
  test(`${id}: ${says}`, (t) => {
    const claims = Object.entries(rows).map(([name, { asks, hard, reserved, weight, isSystem }]): ShareRequest => ({
      name,
      request: things(asks),
      hard: hard && things(hard),
      reserved: reserved && things(reserved),
      weight,
      isSystem,
    }));
    const found = fairShares(claims, things(cluster), { lendReserved });
    t.same(Object.fromEntries([...found.of].map(([name, share]) => [name, inThings(share)])), expected);
    t.same(found.notGuaranteed, notGuaranteed);
    t.end();
  });
}

test('a resource that the cluster lacks does not reduce the share of a consumer that requests it', (t) => {
  const claims = [
    { name: 'a', request: things({ cpu: 10, 'example.com/fpga': 1 }) },
    { name: 'b', request: things({ cpu: 10 }) },
  ];
  const { of } = fairShares(claims, new Map([...things({ cpu: 10 }), ['example.com/fpga', 0]]));
  t.same([inThings(of.get('a')), inThings(of.get('b'))], [{ cpu: 5 }, { cpu: 5 }]);
  t.end();
});

test('indivisible amounts are rounded down, and their sum fits', (t) => {
  const claims = ['a', 'b', 'c'].map((name) => ({ name, request: new Map([['memory', 2 ** 50]]) }));
  const shares = [...fairShares(claims, new Map([['memory', 2 ** 45 + 1]])).of.values()].map(
    (share) => share.get('memory') ?? 0,
  );
  t.same(
    shares,
    [0, 1, 2].map(() => Math.floor((2 ** 45 + 1) / 3)),
  );
  t.end();
});
