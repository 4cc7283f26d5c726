import { test } from 'tap';
import { Quota, formatAmount, type QuotaEvent } from '../../../../src/quota/index.js';

const HOUR = 3_600_000;

function siblings() {
  let now = 0;
  const quota = new Quota({ clock: () => now });
  const events: QuotaEvent[] = [];
  quota.on((event) => events.push(event));
  quota.createGroup({ name: 'root', hard: { 'limits.cpu': 20 } });
  quota.createGroup({ name: 'a', parent: 'root', hard: { 'limits.cpu': 10 } });
  quota.createGroup({ name: 'b', parent: 'root', hard: { 'limits.cpu': 10 } });
  return {
    quota,
    events,
    at: (hour: number): void => {
      now = hour * HOUR;
      quota.execute({ type: 'tick' });
    },
    hard: (name: string) => formatAmount('limits.cpu', quota.status(name)?.hard.get('limits.cpu') ?? -1n),
    admit: (name: string, group: string, count: number) =>
      quota.admit({ workload: { kind: 'Job', name }, group, podSets: [{ count, limits: { cpu: 1 } }] }).code,
  };
}

const LOAN = { id: 'l', lender: 'a', borrower: 'b', amounts: { 'limits.cpu': 4 }, until: 5 * HOUR };

test('a loan moves quota to a sibling and returns it at its end', (t) => {
  const { quota, hard, at, admit, events } = siblings();
  t.equal(quota.loan(LOAN).code, 'OK');
  t.same([hard('a'), hard('b')], ['6', '14']);
  t.equal(admit('x', 'b', 14), 'OK');
  at(5);
  t.same([hard('a'), hard('b')], ['10', '10']);
  t.equal(admit('y', 'a', 10), 'OK', 'the lender has its own again');
  t.equal(admit('z', 'b', 1), 'QuotaExceeded', 'the borrower is over its quota, nothing of it is evicted');
  t.same(
    events.filter(({ type }) => ['loanBegan', 'loanReturned', 'overQuota'].includes(type)).map(({ type }) => type),
    ['loanBegan', 'loanReturned', 'overQuota'],
  );
  t.end();
});

test('a loan may begin later, and does not begin if the lender needs the quota then', (t) => {
  const { quota, hard, at, admit, events } = siblings();
  quota.loan({ ...LOAN, validFrom: HOUR });
  t.equal(hard('a'), '10');
  at(1);
  t.equal(hard('a'), '6');
  at(5);
  quota.loan({ ...LOAN, validFrom: 6 * HOUR, until: 7 * HOUR });
  admit('x', 'a', 8);
  at(6);
  t.equal(hard('a'), '10');
  t.same(
    events.filter(({ code }) => code === 'LoanRefused').map(({ subject }) => subject),
    ['l'],
  );
  t.end();
});

test('quota that the borrower gave to children returns when the children shrink', (t) => {
  const { quota, hard, at, events } = siblings();
  quota.loan(LOAN);
  quota.createGroup({ name: 'c', parent: 'b', hard: { 'limits.cpu': 13 } });
  at(5);
  t.same([hard('a'), hard('b')], ['7', '13']);
  t.ok(events.some(({ type }) => type === 'loanOverdue'));
  quota.updateGroup({ name: 'c', hard: { 'limits.cpu': 11 } });
  t.same([hard('a'), hard('b')], ['9', '11']);
  quota.deleteGroup('c');
  t.same([hard('a'), hard('b')], ['10', '10']);
  t.end();
});

test('a loan ends when its lender or borrower is deleted', (t) => {
  for (const gone of ['a', 'b']) {
    const { quota, at } = siblings();
    quota.loan(LOAN);
    t.equal(quota.deleteGroup(gone).code, 'OK');
    const left = gone === 'a' ? 'b' : 'a';
    t.equal(formatAmount('limits.cpu', quota.status(left)?.hard.get('limits.cpu') ?? -1n), '10');
    t.equal(formatAmount('limits.cpu', quota.status('root')?.used.get('limits.cpu') ?? -1n), '10');
    at(9);
    t.equal(formatAmount('limits.cpu', quota.status(left)?.hard.get('limits.cpu') ?? -1n), '10');
  }
  t.end();
});

test('an impossible loan is refused', (t) => {
  const { quota, admit } = siblings();
  quota.createGroup({ name: 'c', parent: 'b', hard: { 'limits.cpu': 1 } });
  t.equal(quota.loan({ ...LOAN, lender: 'nope' }).code, 'GroupNotFound');
  t.equal(quota.loan({ ...LOAN, borrower: 'c' }).code, 'LoanRefused', 'no siblings');
  t.equal(quota.loan({ ...LOAN, borrower: 'a' }).code, 'LoanRefused', 'nobody lends to itself');
  t.equal(quota.loan({ ...LOAN, amounts: { 'limits.memory': 1 } }).code, 'UnknownKey');
  t.equal(quota.loan({ ...LOAN, amounts: { 'cash/limits.cpu': 1 } }).code, 'LoanRefused');
  t.equal(quota.loan({ ...LOAN, amounts: { 'limits.cpu': -1 } }).code, 'InvalidQuantity');
  t.equal(quota.loan({ ...LOAN, amounts: {} }).code, 'InvalidQuantity');
  t.equal(quota.loan({ ...LOAN, until: 0 }).code, 'InvalidTime');
  t.equal(quota.loan({ ...LOAN, id: '' }).code, 'InvalidName');
  admit('x', 'a', 7);
  t.equal(quota.loan(LOAN).code, 'LoanRefused', 'the lender uses it');
  t.equal(quota.loan({ ...LOAN, amounts: { 'limits.cpu': 3 } }).code, 'OK');
  t.equal(quota.loan({ ...LOAN, amounts: { 'limits.cpu': 1 } }).code, 'LoanExists');
  t.end();
});
