import type { ClaimUnit } from '../ledger/claim-unit.js';
import { DRIVER_NAME } from './names.js';
import type { AttributeValue } from './published-device.js';

/** Attributes of a published device, by its name; empty for a device that is not published any more. */
export type AttributesOf = (device: string) => Readonly<Record<string, AttributeValue>>;

type Described = Pick<ClaimUnit, 'claim' | 'nameInPod' | 'request' | 'devices'>;

/** Where containers expect the files of all drivers (KEP-5304). */
const CONTAINER_DIRECTORY = '/var/run/kubernetes.io/dra-device-attributes';

/** Versions of the file, newest first; their fields are the same. */
const VERSIONS = ['metadata.resource.k8s.io/v1beta1', 'metadata.resource.k8s.io/v1alpha1'];

/**
 * Path in a container of the file that describes the devices of a claim's request. A program finds it by the pod's
 * manifest alone: the generated name of a claim from a template is not in it.
 */
export function deviceMetadataPath({ claim, nameInPod, request }: Described): string {
  const claimPath = nameInPod === undefined ? `resourceclaims/${claim.name}` : `resourceclaimtemplates/${nameInPod}`;
  return `${CONTAINER_DIRECTORY}/${claimPath}/${request}/${DRIVER_NAME}-metadata.json`;
}

/** Content of that file: the same DeviceMetadata once in each version. */
export function deviceMetadata(unit: Described, attributesOf: AttributesOf): string {
  const { claim, nameInPod, request, devices } = unit;
  return VERSIONS.map((apiVersion) => {
    const object = {
      apiVersion,
      kind: 'DeviceMetadata',
      metadata: { ...claim, generation: 1 },
      podClaimName: nameInPod,
      requests: [
        {
          name: devices[0]?.request ?? request,
          devices: devices.map(({ pool, device, gpuUuid }) => ({
            driver: DRIVER_NAME,
            pool,
            name: device,
            // The published device of a MIG instance that is created for the claim has no UUID.
            attributes: { uuid: { string: gpuUuid }, ...attributesOf(device) },
          })),
        },
      ],
    };
    return `${JSON.stringify(object, null, 2)}\n`;
  }).join('');
}
