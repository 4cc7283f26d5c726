import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'tap';
import { AGENT_AUDIENCE, reviewToken } from '../../src/kube/token-review.js';
import { clientOf } from './setting.js';

interface Review {
  readonly kind: string;
  readonly spec: {
    readonly token?: string;
    readonly audiences?: readonly string[];
    readonly user?: string;
    readonly groups?: readonly string[];
    readonly nonResourceAttributes?: { readonly path: string; readonly verb: string };
  };
}

const FOR_AGENTS = `x.${Buffer.from(JSON.stringify({ aud: [AGENT_AUDIENCE] })).toString('base64url')}.x`;

/** The answer of an API server to reviews: nothing is stored, the answer is the request with a status. */
async function reviewer(t: { teardown(action: () => Promise<void>): void }, knowsAudiences = true) {
  const reviews: Review[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const review = (await json(request)) as Review;
      reviews.push(review);
      const { token = '', audiences, user, nonResourceAttributes } = review.spec;
      const known = token === 'prometheus' || token === 'nobody-in-particular' || token === FOR_AGENTS;
      const status =
        request.url === '/apis/authentication.k8s.io/v1/tokenreviews'
          ? known
            ? {
                authenticated: true,
                user: { username: token === FOR_AGENTS ? 'reader' : token, uid: '1', groups: ['system:authenticated'] },
                ...(knowsAudiences ? { audiences } : {}),
              }
            : { authenticated: false, error: 'invalid' }
          : { allowed: user !== 'nobody-in-particular' && nonResourceAttributes?.path === '/metrics' };
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ ...review, status }));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, reviews };
}

test('the cluster decides whose token it is, and what its owner may read', async (t) => {
  const { url, reviews } = await reviewer(t);
  const client = clientOf(t, url);
  t.same(await reviewToken(client, 'prometheus', '/metrics'), { kind: 'allowed' });
  t.match(reviews, [
    { kind: 'TokenReview', spec: { token: 'prometheus' } },
    {
      kind: 'SubjectAccessReview',
      spec: {
        user: 'prometheus',
        groups: ['system:authenticated'],
        nonResourceAttributes: { path: '/metrics', verb: 'get' },
      },
    },
  ]);
  t.same(await reviewToken(client, 'prometheus', '/api/node'), { kind: 'forbidden', user: 'prometheus' });
  t.same(await reviewToken(client, 'nobody-in-particular', '/metrics'), {
    kind: 'forbidden',
    user: 'nobody-in-particular',
  });
  reviews.length = 0;
  t.same(await reviewToken(client, 'stolen', '/metrics'), { kind: 'unknown' });
  t.equal(reviews.length, 1, 'no access review follows an unknown token');
});

test('a token for agents is reviewed for their audience, which the cluster must confirm', async (t) => {
  const { url, reviews } = await reviewer(t);
  t.same(await reviewToken(clientOf(t, url), FOR_AGENTS, '/metrics'), { kind: 'allowed' });
  t.same(reviews[0]?.spec, { token: FOR_AGENTS, audiences: [AGENT_AUDIENCE] });
  const { url: other } = await reviewer(t, false);
  t.same(await reviewToken(clientOf(t, other), FOR_AGENTS, '/metrics'), { kind: 'unknown' });
});

test('without an answer of the cluster, no request is authorised', async (t) => {
  t.match(await reviewToken(clientOf(t, 'http://127.0.0.1:1'), 'prometheus', '/metrics'), {
    kind: 'unavailable',
    reason: /unreachable/,
  });
});
