import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { DRIVER_NAME } from '../../gpu/claims/names.js';
import type { ClaimRef } from '../../gpu/claims/resource-claim.js';
import { draV1Proto, pluginRegistrationProto } from '../../rpc/proto.js';
import { callUnary } from '../../rpc/unary.js';

/** A device that the driver prepared, as the kubelet records it. */
export interface PreparedDevice {
  readonly request_names: readonly string[];
  readonly pool_name: string;
  readonly device_name: string;
  readonly cdi_device_ids: readonly string[];
  readonly share_id?: string;
}

export type PreparedAnswer =
  { readonly ok: true; readonly devices: readonly PreparedDevice[] } | { readonly ok: false; readonly reason: string };

/** What a driver tells the kubelet when it registers. */
export interface DriverInfo {
  readonly name: string;
  readonly endpoint: string;
  readonly supported_versions: readonly string[];
}

interface KnownClaim {
  readonly claim: ClaimRef;
  readonly podUids: ReadonlySet<string>;
  readonly devices: readonly PreparedDevice[];
  /** False after a restart: the kubelet then asks the driver again. */
  readonly prepared: boolean;
}

/** A driver's answers, by claim UID; the release has no devices. */
type Answers = Readonly<Record<string, { readonly error: string; readonly devices: readonly PreparedDevice[] }>>;

/** The kubelet's record of claims, in its root directory. */
const RECORD_FILE = 'dra_manager_state';

const CALL_TIMEOUT_MS = 30_000;

/**
 * The claims of an emulated kubelet: registration of the driver, preparation before the containers of a pod, release
 * after its end, and the record in the kubelet's directory, which is written before and after every call.
 */
export class ClaimManager {
  readonly #registryPath: string;
  #claims = new Map<string, KnownClaim>();
  #endpoint: string | null = null;

  constructor(registryPath: string) {
    this.#registryPath = registryPath;
  }

  /** UIDs of the claims in the kubelet's record. */
  get known(): ReadonlySet<string> {
    return new Set(this.#claims.keys());
  }

  /** Finds the driver's registration socket, and accepts the driver. Rejects if the driver does not answer. */
  async register(): Promise<DriverInfo> {
    const { Registration } = pluginRegistrationProto().pluginregistration;
    const socket = join(this.#registryPath, `${DRIVER_NAME}-reg.sock`);
    const client = new Registration(`unix:${socket}`, credentials.createInsecure());
    try {
      const info = await callUnary(client, 'GetInfo', {}, CALL_TIMEOUT_MS);
      await callUnary(client, 'NotifyRegistrationStatus', { plugin_registered: true }, CALL_TIMEOUT_MS);
      this.#endpoint = info.endpoint;
      return info;
    } finally {
      client.close();
    }
  }

  /** Prepares the claims of a pod, as before its containers are created. Rejects if the driver does not answer. */
  async prepare(podUid: string, claims: readonly ClaimRef[]): Promise<ReadonlyMap<string, PreparedAnswer>> {
    for (const claim of claims) {
      const known = this.#claims.get(claim.uid) ?? { claim, podUids: new Set(), devices: [], prepared: false };
      this.#claims.set(claim.uid, { ...known, podUids: new Set([...known.podUids, podUid]) });
    }
    await this.#record();
    const answers = new Map<string, PreparedAnswer>();
    const missing = claims.filter(({ uid }) => this.#claims.get(uid)?.prepared !== true);
    const given = missing.length === 0 ? {} : await this.#call('NodePrepareResources', missing);
    for (const { uid } of claims) {
      const known = this.#claims.get(uid);
      const answer = given[uid];
      if (known === undefined) continue;
      if (answer === undefined) answers.set(uid, { ok: true, devices: known.devices });
      else if (answer.error !== '') answers.set(uid, { ok: false, reason: answer.error });
      else {
        this.#claims.set(uid, { ...known, devices: answer.devices, prepared: true });
        answers.set(uid, { ok: true, devices: answer.devices });
      }
    }
    await this.#record();
    return answers;
  }

  /**
   * Releases the claims that no other pod uses, as after the end of a pod. Rejects if the driver does not answer or
   * refuses; the kubelet then calls again.
   */
  async unprepare(podUid: string): Promise<void> {
    const last: ClaimRef[] = [];
    for (const { claim, podUids } of this.#claims.values())
      if (podUids.has(podUid) && podUids.size === 1) last.push(claim);
    if (last.length > 0) {
      const answers = await this.#call('NodeUnprepareResources', last);
      const error = Object.values(answers).find((answer) => answer.error !== '')?.error;
      if (error !== undefined) throw new Error(error);
    }
    await this.forget(podUid);
  }

  /** Removes a pod from the record without a call, as after a forced deletion. */
  async forget(podUid: string): Promise<void> {
    for (const [uid, known] of this.#claims) {
      const podUids = new Set([...known.podUids].filter((other) => other !== podUid));
      if (podUids.size === 0) this.#claims.delete(uid);
      else this.#claims.set(uid, { ...known, podUids });
    }
    await this.#record();
  }

  /** Starts again: the driver must register, and claims count as not prepared until the driver answers for them. */
  restart(): void {
    this.#endpoint = null;
    this.#claims = new Map([...this.#claims].map(([uid, known]) => [uid, { ...known, prepared: false }]));
  }

  async #call(
    method: 'NodePrepareResources' | 'NodeUnprepareResources',
    claims: readonly ClaimRef[],
  ): Promise<Answers> {
    if (this.#endpoint === null) throw new Error(`DRA driver ${DRIVER_NAME} is not registered`);
    const { DRAPlugin } = draV1Proto().k8s.io.kubelet.pkg.apis.dra.v1;
    const client = new DRAPlugin(`unix:${this.#endpoint}`, credentials.createInsecure());
    try {
      const answer = await callUnary(client, method, { claims: [...claims] }, CALL_TIMEOUT_MS);
      return (answer?.claims ?? {}) as Answers;
    } finally {
      client.close();
    }
  }

  async #record(): Promise<void> {
    const path = join(dirname(this.#registryPath), RECORD_FILE);
    const state = {
      kind: 'DRACheckpoint',
      apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1',
      ClaimInfoStateList: [...this.#claims.values()].map(({ claim, podUids, devices }) => ({
        ClaimUID: claim.uid,
        ClaimName: claim.name,
        Namespace: claim.namespace,
        PodUIDs: Object.fromEntries([...podUids].map((uid) => [uid, {}])),
        DriverState: {
          [DRIVER_NAME]: {
            Devices: devices.map((device) => ({
              PoolName: device.pool_name,
              DeviceName: device.device_name,
              ShareID: device.share_id,
              RequestNames: device.request_names,
              CDIDeviceIDs: device.cdi_device_ids,
            })),
          },
        },
      })),
    };
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, JSON.stringify({ Data: JSON.stringify(state), Checksum: 1 }));
  }
}
