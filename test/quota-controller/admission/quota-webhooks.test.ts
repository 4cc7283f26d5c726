import { test } from 'tap';
import { register } from '../../../src/quota-controller/admission/quota-webhooks.js';
import { clientTo, quotaServer } from '../setting.js';

interface Webhook {
  readonly name: string;
  readonly clientConfig: { readonly caBundle: string };
  readonly matchConditions?: readonly object[];
}

test('conditions that an operator added to a webhook stay when it is registered again', async (t) => {
  const server = await quotaServer();
  t.teardown(() => server.stop());
  const client = clientTo(server.url);
  t.teardown(() => client.close());
  const options = { name: 'quota', kinds: [], unlabelled: 'Ignore' } as const;
  const by = (authority: string) => async () => ({ target: { url: 'https://127.0.0.1:1' }, prefix: '', authority });
  const registered = (): readonly Webhook[] =>
    (server.read('validatingwebhookconfigurations', '', 'quota')?.['webhooks'] ?? []) as readonly Webhook[];
  await register(client, { ...options, announced: by('first') });
  const before = registered();
  const own = before.filter((webhook) => 'matchConditions' in webhook).map(({ name }) => name);
  t.same(own, ['gpu-resize.quota.gpu-manager.io']);

  const matchConditions = [{ name: 'not-restored', expression: "!('restored' in object.metadata.labels)" }];
  const [changed] = before;
  server.edit('validatingwebhookconfigurations', '', 'quota', (object) => ({
    ...object,
    webhooks: before.map((webhook) => (webhook === changed ? { ...webhook, matchConditions } : webhook)),
  }));
  await register(client, { ...options, announced: by('second') });
  const caBundle = Buffer.from('second').toString('base64');
  t.match(registered(), [{ name: changed?.name, matchConditions, clientConfig: { caBundle } }]);
  t.equal(registered().filter((webhook) => 'matchConditions' in webhook).length, 1 + own.length);
});
