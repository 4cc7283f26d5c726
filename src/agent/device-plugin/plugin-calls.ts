import { status } from '@grpc/grpc-js';
import type { ContainerEdits } from '../../gpu/container-edits.js';
import { markRefusal } from '../../gpu/refusal-mark.js';
import type { RequestRefusal } from '../../gpu/request.js';
import type { ResourceKind } from '../../gpu/resources.js';
import type { AllocateRequest__Output } from '../../rpc/gen/v1beta1/AllocateRequest.js';
import type { AllocateResponse } from '../../rpc/gen/v1beta1/AllocateResponse.js';
import type { ContainerAllocateResponse } from '../../rpc/gen/v1beta1/ContainerAllocateResponse.js';
import type { ListAndWatchResponse } from '../../rpc/gen/v1beta1/ListAndWatchResponse.js';
import type { PreferredAllocationRequest__Output } from '../../rpc/gen/v1beta1/PreferredAllocationRequest.js';
import type { PreferredAllocationResponse } from '../../rpc/gen/v1beta1/PreferredAllocationResponse.js';
import type { PreStartContainerRequest__Output } from '../../rpc/gen/v1beta1/PreStartContainerRequest.js';
import { RpcRefusal } from '../../rpc/unary.js';
import type { DeviceSource } from './devices.js';

/** The kubelet's calls for one resource, in the messages of the device plugin API. A refusal is an RpcRefusal. */
export interface PluginCalls {
  /** The content of the next ListAndWatch message. */
  list(): ListAndWatchResponse;
  /** Calls `listener` whenever the result of `list` may have changed; the returned function unsubscribes. */
  onListChanged(listener: () => void): () => void;
  preferredAllocation(request: PreferredAllocationRequest__Output): Promise<PreferredAllocationResponse>;
  allocate(request: AllocateRequest__Output): Promise<AllocateResponse>;
  preStartContainer(request: PreStartContainerRequest__Output): Promise<object>;
}

/** The calls for one resource, answered by the agent's own decisions. */
export function callsOf(kind: ResourceKind, devices: DeviceSource): PluginCalls {
  return {
    list: () => ({
      devices: devices.devices(kind).map((device) => ({
        ID: device.id,
        health: device.healthy ? 'Healthy' : 'Unhealthy',
        topology: device.numaNode === null ? null : { nodes: [{ ID: device.numaNode }] },
      })),
    }),
    onListChanged: (listener) => devices.onDevicesChanged(listener),
    async preferredAllocation(request) {
      const responses = [];
      for (const container of request.container_requests) {
        const answer = await devices.preferred(
          kind,
          container.available_deviceIDs,
          container.must_include_deviceIDs,
          container.allocation_size,
        );
        if (!answer.ok) throw refusalOf(answer);
        responses.push({ deviceIDs: [...answer.ids] });
      }
      return { container_responses: responses };
    },
    async allocate(request) {
      const responses = [];
      for (const container of request.container_requests) {
        const answer = await devices.allocate(kind, container.devicesIDs);
        if (!answer.ok) throw refusalOf(answer);
        responses.push(allocateResponse(answer.edits));
      }
      return { container_responses: responses };
    },
    async preStartContainer(request) {
      const answer = await devices.preStart(kind, request.devicesIDs);
      if (!answer.ok) throw refusalOf({ ...answer, reason: `${START_CHECK_FAILED}: ${answer.reason}` });
      return {};
    },
  };
}

/** Text that tools for the original's errors search for. */
const START_CHECK_FAILED = 'PreStartContainer check failed';

const STATUS: Readonly<Partial<Record<RequestRefusal['code'], status>>> = {
  'bad-core-count': status.INVALID_ARGUMENT,
  'core-missing': status.INVALID_ARGUMENT,
  'memory-missing': status.INVALID_ARGUMENT,
  'memory-too-large': status.INVALID_ARGUMENT,
  'nothing-fits': status.RESOURCE_EXHAUSTED,
  'unknown-ids': status.NOT_FOUND,
  'unknown-container': status.NOT_FOUND,
};

function refusalOf(refusal: RequestRefusal): RpcRefusal {
  return new RpcRefusal(STATUS[refusal.code] ?? status.FAILED_PRECONDITION, markRefusal(refusal.reason));
}

function allocateResponse(edits: ContainerEdits): ContainerAllocateResponse {
  return {
    envs: edits.environment,
    mounts: edits.mounts.map((mount) => ({
      container_path: mount.containerPath,
      host_path: mount.hostPath,
      read_only: !mount.writable,
    })),
    devices: edits.deviceNodes.map((node) => ({
      container_path: node.containerPath,
      host_path: node.hostPath,
      permissions: 'rwm',
    })),
    annotations: edits.annotations,
    cdi_devices: edits.cdiDevices.map((name) => ({ name })),
  };
}
