// Registers a container with the agent and prints its limits: what the library of tkestack's images does before CUDA
// starts. It runs in a container that has a part of a GPU.
//
//   node vcuda-client.mjs --container-id ID        as newer libraries do
//   node vcuda-client.mjs --container NAME         as older libraries do
//
// --socket: by default /etc/vcuda/vcuda.sock
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

// Where vcuda.config holds its fields: integers in the byte order of the machine, texts that end with a zero byte.
const POD_UID = { at: 0, bytes: 48 };
const SOFT_LIMIT = 48;
const MEMORY_BYTES = 0x2010;
const CORES = 0x2018;
const HARD_LIMIT = 0x201c;

const { values } = parseArgs({
  options: {
    socket: { type: 'string', default: '/etc/vcuda/vcuda.sock' },
    'container-id': { type: 'string', default: '' },
    container: { type: 'string', default: '' },
  },
});

/** Rejects with the reason if the agent refuses this process. */
function register() {
  const protocol = fileURLToPath(new URL('../proto/vcuda.proto', import.meta.url));
  const { vcuda } = loadPackageDefinition(loadSync(protocol, { keepCase: true }));
  const client = new vcuda.VCUDAService(`unix:${values.socket}`, credentials.createInsecure());
  const request = { container_id: values['container-id'], container_name: values.container };
  return new Promise((resolve, reject) => {
    client.RegisterVDevice(request, { deadline: Date.now() + 10_000 }, (error) => {
      client.close();
      if (error) reject(error);
      else resolve();
    });
  });
}

/** The file that the agent has written before it answers. */
function limits() {
  const name = values['container-id'] || values.container;
  const config = readFileSync(join(dirname(values.socket), name, 'vcuda.config'));
  const hard = config.readInt32LE(HARD_LIMIT) !== 0;
  return {
    podUid: config.toString('latin1', POD_UID.at, POD_UID.bytes).replace(/\0.*$/su, ''),
    memoryMib: Number(config.readBigUInt64LE(MEMORY_BYTES)) / 1024 / 1024,
    cores: config.readInt32LE(CORES),
    // With a soft limit a container may use this much while others leave the GPU idle.
    mostCores: hard ? config.readInt32LE(CORES) : config.readInt32LE(SOFT_LIMIT),
  };
}

try {
  await register();
  console.log(JSON.stringify(limits()));
} catch (error) {
  console.error(`not registered over ${values.socket}: ${error.message}`);
  process.exitCode = 1;
}
