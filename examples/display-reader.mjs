// Prints what the containers of a node use of their GPUs, read from the display service of the agent.
//
//   node display-reader.mjs [SOCKET]     by default /var/run/gpu-manager.sock, which only root can read
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fileURLToPath } from 'node:url';

const MIB = 1024 * 1024;

const socket = process.argv[2] ?? '/var/run/gpu-manager.sock';
const protocol = fileURLToPath(new URL('../proto/node.proto', import.meta.url));
const { vgpu } = loadPackageDefinition(loadSync(protocol, { keepCase: true }));
const client = new vgpu.Node(`unix:${socket}`, credentials.createInsecure());

/** The document of `GET /api/node`; rejects with the status of the call. */
function nodeDocument() {
  const deadline = Date.now() + 10_000;
  return new Promise((resolve, reject) => {
    client.Show({}, { deadline }, (error, answer) => (error ? reject(error) : resolve(JSON.parse(answer.json))));
  });
}

function memoryText({ usedMemoryBytes, memoryLimitBytes }) {
  const used = Math.round(usedMemoryBytes / MIB);
  return memoryLimitBytes === null ? `${used} MiB` : `${used} of ${Math.round(memoryLimitBytes / MIB)} MiB`;
}

try {
  const { node, allocations } = await nodeDocument();
  for (const { owners, slices } of allocations)
    for (const slice of slices) {
      // No owner: the kubelet has not started the container yet. Several: they use the same devices in turn.
      const names = owners.map(({ namespace, pod, container }) => `${namespace}/${pod}/${container}`).join(', ');
      const cores = `${slice.usedPercent.toFixed(0)} of ${slice.share} cores`;
      console.log(`${node} GPU ${slice.gpuIndex}: ${names || '(starting)'} uses ${cores}, ${memoryText(slice)}`);
    }
} catch (error) {
  console.error(`the agent did not answer on ${socket}: ${error.message}`);
  process.exitCode = 1;
} finally {
  client.close();
}
