import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { certificateAuthority } from '../../src/host/certificate.js';
import type { KubeApi } from '../../src/kube/client.js';

const COLLECTION = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

/** A mutating webhook of somebody else, which answers every review with the same JSON patch. */
export class MutatingWebhook {
  readonly #name: string;
  readonly #patch: string;
  #server: Server | null = null;

  /** API servers ask the webhooks in the order of these names. */
  constructor(name: string, patch: readonly object[]) {
    this.#name = name;
    this.#patch = Buffer.from(JSON.stringify(patch)).toString('base64');
  }

  /** Listens, and registers itself for these requests; an API server notices that after a moment. */
  async start(
    api: KubeApi,
    requests: { readonly rules: readonly object[]; readonly objectSelector: object },
  ): Promise<void> {
    const authority = await certificateAuthority(this.#name, 1);
    const { key, certificate } = await authority.server(['127.0.0.1']);
    const server = createServer({ key, cert: certificate }, (request, response) => {
      void text(request).then((body) => {
        const { uid } = (JSON.parse(body) as { readonly request: { readonly uid: string } }).request;
        const answer = { uid, allowed: true, patchType: 'JSONPatch', patch: this.#patch };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }));
      });
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const answer = await api.request({
      method: 'POST',
      path: COLLECTION,
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'MutatingWebhookConfiguration',
        metadata: { name: this.#name },
        webhooks: [
          {
            ...requests,
            name: `${this.#name}.example.com`,
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            clientConfig: {
              url: `https://127.0.0.1:${port}/`,
              caBundle: Buffer.from(authority.certificate).toString('base64'),
            },
          },
        ],
      },
    });
    if (!answer.ok) throw new Error(answer.message);
  }

  async stop(api: KubeApi): Promise<void> {
    await api.request({ method: 'DELETE', path: `${COLLECTION}/${this.#name}` });
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(undefined));
  }
}
