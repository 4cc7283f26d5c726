import type { Log } from '../../host/log.js';
import { draV1Proto } from '../../rpc/proto.js';
import type { RpcService } from '../../rpc/rpc-server.js';
import { unary } from '../../rpc/unary.js';
import type { ClaimHandler, PreparedClaim } from './ports.js';

interface ClaimMessage {
  readonly namespace: string;
  readonly uid: string;
  readonly name: string;
}

interface ClaimsMessage {
  readonly claims: readonly ClaimMessage[];
}

/**
 * The kubelet's DRAPlugin service. An error of one claim is part of the answer: a failed call would
 * fail all claims.
 */
export function draService(handler: ClaimHandler, log: Log): RpcService {
  const failed = (error: unknown): void => log.error({ err: error }, 'a request of the kubelet about claims failed');
  const handlers: RpcService['handlers'] = {
    NodePrepareResources: unary(async ({ claims }: ClaimsMessage, isOver) => {
      const answers = await handler.prepare(claims.map(refOf), isOver);
      return {
        claims: Object.fromEntries(claims.map(({ uid }) => [uid, prepareAnswer(answers.get(uid) ?? UNANSWERED)])),
      };
    }, failed),
    NodeUnprepareResources: unary(async ({ claims }: ClaimsMessage) => {
      const errors = new Map<string, string>();
      await Promise.all(
        claims.map((claim) =>
          handler.unprepare(refOf(claim)).catch((error: unknown) => {
            failed(error);
            errors.set(claim.uid, `cannot be released: ${(error as Error).message}`);
          }),
        ),
      );
      return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, errorAnswer(errors.get(uid))])) };
    }, failed),
  };
  return { definition: draV1Proto().k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin.service, handlers };
}

const UNANSWERED: PreparedClaim = { ok: false, reason: 'the driver returned no result for this claim' };

const refOf = ({ namespace, uid, name }: ClaimMessage): ClaimMessage => ({ namespace, uid, name });

/** Omits absent errors, as the kubelet's own types do. */
const errorAnswer = (error: string | undefined): object => (error === undefined ? {} : { error });

function prepareAnswer(answer: PreparedClaim): object {
  if (!answer.ok) return { error: answer.reason };
  return {
    devices: answer.devices.map(({ request, pool, device, shareId, cdiDevice }) => ({
      request_names: [request],
      pool_name: pool,
      device_name: device,
      cdi_device_ids: [cdiDevice],
      // An empty text would count as present.
      ...(shareId !== null ? { share_id: shareId } : {}),
    })),
  };
}
