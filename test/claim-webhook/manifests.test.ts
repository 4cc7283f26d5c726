import { test } from 'tap';
import { conversionConfiguration, parametersConfiguration } from '../../src/claim-webhook/claim-webhooks.js';
import { manifestsOf } from '../quota-controller/setting.js';

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

test('the role lets the webhook change claim templates and its own objects, and nothing else', (t) => {
  const objects = manifestsOf('etc/dra/webhook.yaml');
  const rules = objects.flatMap((object) => (object as unknown as { readonly rules?: readonly Rule[] }).rules ?? []);
  const writing = rules.filter(({ verbs }) => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)));
  t.same(
    writing.filter(({ resourceNames }) => resourceNames === undefined).flatMap(({ resources }) => resources),
    ['resourceclaimtemplates'],
  );
  for (const { resources, resourceNames = [] } of writing)
    for (const name of resourceNames) {
      t.match(name, /^gpu-manager-claims/, resources.join());
      t.ok(
        objects.some(({ metadata }) => metadata.name === name),
        name,
      );
    }
  t.notMatch(JSON.stringify(rules), /\*/);
  t.end();
});

test('pods wait for the webhook only if they ask for conversion; parameters do not wait', (t) => {
  const options = { name: 'claims', target: { url: 'https://127.0.0.1' }, prefix: '/secret', authority: 'PEM' };
  const [parameters] = parametersConfiguration(options).webhooks;
  t.match(parameters, { failurePolicy: 'Ignore', clientConfig: { url: 'https://127.0.0.1/secret/parameters' } });
  const conversions = conversionConfiguration(options).webhooks;
  t.equal(conversions.length, 4);
  for (const requests of conversions.slice(2)) {
    t.match(JSON.stringify(requests), /"operator":"In","values":\["device-plugin"\]/);
    t.match(JSON.stringify(requests), /\/secret\/requests/);
    t.notMatch(JSON.stringify(requests.matchConditions), /vcuda-core/, 'requests of our own stay');
  }
  for (const conversion of conversions.slice(0, 2)) {
    t.match(conversion, { failurePolicy: 'Fail', sideEffects: 'NoneOnDryRun', reinvocationPolicy: 'IfNeeded' });
    t.match(JSON.stringify(conversion), /"key":"tencent.com\/vcuda-via","operator":"In","values":\["dra"\]/);
    t.match(JSON.stringify(conversion), /tencent.com\/vcuda-core/);
  }
  t.end();
});
