import fc from 'fast-check';
import { test } from 'tap';
import {
  CUDA_VERSION_LABEL,
  DRIVER_VERSION_LABEL,
  GPU_MODEL_LABEL,
  GPU_PRODUCT_LABEL,
} from '../../../src/gpu/annotations.js';
import { modelName, nodeLabels } from '../../../src/agent/gpus/node-labels.js';

test('the model label holds the common name of the GPU', (t) => {
  const names: Readonly<Record<string, string>> = {
    'NVIDIA H200': 'H200',
    'NVIDIA B200': 'B200',
    'NVIDIA GB200': 'GB200',
    'NVIDIA H100 80GB HBM3': 'H100',
    'NVIDIA H100 PCIe': 'H100',
    'NVIDIA A100-SXM4-40GB': 'A100',
    'NVIDIA A100 80GB PCIe': 'A100',
    'A100-SXM4-80GB': 'A100',
    'NVIDIA A10G': 'A10G',
    'NVIDIA L40S': 'L40S',
    'Tesla T4': 'T4',
    'Tesla M40 24GB': 'M40',
    'Tesla V100-SXM2-16GB': 'V100',
    'Tesla P40': 'P40',
    'NVIDIA GeForce RTX 3090': 'RTX-3090',
    'NVIDIA GeForce RTX 4090 D': 'RTX-4090-D',
    'GeForce GTX 1080 Ti': 'GTX-1080-Ti',
    'NVIDIA GeForce RTX 2080 SUPER': 'RTX-2080-SUPER',
    'Quadro RTX 8000': 'RTX-8000',
    'NVIDIA RTX A6000': 'RTX-A6000',
    'NVIDIA RTX 6000 Ada Generation': 'RTX-6000-Ada',
    'NVIDIA RTX PRO 6000 Blackwell Server Edition': 'RTX-PRO-6000',
    'NVIDIA TITAN V': 'TITAN-V',
    'NVIDIA Graphics Device': 'Graphics-Device',
    NVIDIA: 'NVIDIA',
    '': '',
  };
  for (const [product, model] of Object.entries(names)) t.equal(modelName(product), model, product);
  t.end();
});

test('a node is labelled with model, product and versions', (t) => {
  t.same(
    [
      ...nodeLabels({
        models: ['NVIDIA H100 80GB HBM3', 'NVIDIA H100 80GB HBM3'],
        driverVersion: '580.95.05',
        cudaVersion: 13000,
      }),
    ],
    [
      [GPU_MODEL_LABEL, 'H100'],
      [GPU_PRODUCT_LABEL, 'NVIDIA-H100-80GB-HBM3'],
      [DRIVER_VERSION_LABEL, '580.95.05'],
      [CUDA_VERSION_LABEL, '13.0'],
    ],
  );
  t.end();
});

test('versions are written as their vendors write them', (t) => {
  const cuda = (cudaVersion: number) =>
    nodeLabels({ models: [], driverVersion: null, cudaVersion }).get(CUDA_VERSION_LABEL);
  t.equal(cuda(12080), '12.8');
  t.equal(cuda(11040), '11.4');
  t.equal(cuda(10010), '10.1');
  t.end();
});

test('unknown values have no label', (t) => {
  t.same([...nodeLabels({ models: [], driverVersion: null, cudaVersion: null })], []);
  t.end();
});

test('every GPU name becomes a label value that Kubernetes accepts', (t) => {
  const valid = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
  fc.assert(
    fc.property(fc.string({ maxLength: 120 }), fc.string({ maxLength: 80 }), (model, driverVersion) =>
      [...nodeLabels({ models: [model], driverVersion, cudaVersion: 12040 }).values()].every((value) =>
        valid.test(value),
      ),
    ),
    { numRuns: 500 },
  );
  t.pass('500 names');
  t.end();
});
