import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Hoarder } from '../harness/gpu-machine/hoarder.js';
import type { Container } from './container.js';
import type { RealNode } from './real-node.js';

/** The first branch of NVIDIA's driver with memory limits of control groups. */
const FIRST_BRANCH = 615;
const ROOT = '/sys/fs/cgroup';
const BLOCK_MIB = 256;
/** The program allocates in steps of this size. */
const STEP_MIB = 16;
/** A context takes less than this. */
const CONTEXT_MIB = 1_024;
const PATIENCE_MS = 10_000;

/** Why this machine's driver keeps no memory limits, as far as it can be told without asking it; null: it may. */
export function noDriverLimits(driverVersion: string): string | null {
  const branch = Number.parseInt(driverVersion, 10);
  if (!(branch >= FIRST_BRANCH))
    return `driver ${driverVersion} keeps no memory limits of control groups; ${FIRST_BRANCH} and later do`;
  if (!existsSync(join(ROOT, 'cgroup.controllers'))) return `${ROOT} has control groups of version 1`;
  return null;
}

/** The backend by which the driver keeps limits: `dmem` if the kernel's controller has memory of NVIDIA GPUs. */
function backend(): string {
  const capacity = join(ROOT, 'dmem.capacity');
  return existsSync(capacity) && /^nvidia\//mu.test(readFileSync(capacity, 'utf8')) ? 'dmem' : 'misc';
}

/** What a static program of a pod gets while the driver limits it; each line is one observation. */
export async function* limitsByDriver(node: RealNode, program: string, blocks: number): AsyncGenerator<string> {
  const limitMib = blocks * BLOCK_MIB;
  yield `backend ${backend()}`;
  let group = '';
  const container = await node.run(30, blocks, {}, (podUid) => (group = makeGroup(podUid)));
  const running = new Hoarder(program, process.env);
  try {
    writeFileSync(join(group, 'cgroup.procs'), String(running.pid));
    yield expectHeld('the limit of the pod, before the agent knows the program', await running.order('fill'), limitMib);
    await shown(running, limitMib);
    yield `cuMemGetInfo shows ${limitMib} MiB`;
    yield expectHeld('the limit of the container', await running.order('fill'), limitMib);
    yield `1 GiB of managed memory beyond it: CUDA error ${(await running.order('managed')).split(' ')[1]}`;
    yield* changedLive(node, container, running, limitMib / 2);
  } finally {
    await running.kill();
    node.remove(container);
    await removeGroup(group);
  }
}

async function* changedLive(
  node: RealNode,
  container: Container,
  running: Hoarder,
  limitMib: number,
): AsyncGenerator<string> {
  await running.order('free');
  node.annotate(container, { 'tencent.com/vcuda-memory-limit': `${limitMib}Mi` });
  await shown(running, limitMib);
  yield expectHeld('after a change while it runs', await running.order('fill'), limitMib);
}

/** Waits until the program sees this limit. */
async function shown(running: Hoarder, limitMib: number): Promise<void> {
  const untilMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const total = await running.order('total');
    if (total === `total ${limitMib}`) return;
    if (performance.now() > untilMs) throw new Error(`expected the program to see ${limitMib} MiB, found ${total}`);
    await delay(100);
  }
}

/** Throws unless the program was refused memory within a context and a step of its limit. */
function expectHeld(what: string, answer: string, limitMib: number): string {
  const [, held = NaN, code = NaN] = answer.split(' ').map(Number);
  const text = `${what}: ${held} of ${limitMib} MiB, then CUDA error ${code}`;
  if (!(held <= limitMib && held > limitMib - CONTEXT_MIB - STEP_MIB && code === 2)) throw new Error(text);
  return text;
}

/** The group of a container in that of its pod, named as a kubelet and a runtime do. */
function makeGroup(podUid: string): string {
  const group = join(ROOT, 'kubepods', `pod${podUid}`, 'f'.repeat(64));
  mkdirSync(group, { recursive: true });
  return group;
}

/** Removes the group, and those above it unless others use them. */
async function removeGroup(group: string): Promise<void> {
  // The kernel takes a moment to see that the program has ended.
  await delay(100);
  for (const path of [group, dirname(group), join(ROOT, 'kubepods')]) {
    try {
      rmdirSync(path);
    } catch {
      return;
    }
  }
}
