import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import * as abi from '../../src/abi/vgpu-abi.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const noCompiler = spawnSync('gcc', ['--version']).status === 0 ? false : 'gcc is not installed';

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const STRUCTS = {
  vgpu_limits_header: abi.LIMITS_HEADER,
  vgpu_device_identity: abi.DEVICE_IDENTITY,
  vgpu_device_live: abi.DEVICE_LIVE,
  vgpu_limits: abi.LIMITS_LAYOUT,
  vgpu_usage_header: abi.USAGE_HEADER,
  vgpu_device_usage: abi.DEVICE_USAGE,
  vgpu_process_slot: abi.PROCESS_SLOT,
  vgpu_object: abi.SHARED_OBJECT,
  vgpu_ledger_entry: abi.LEDGER_ENTRY,
  vgpu_activity: abi.ACTIVITY,
  vgpu_usage: abi.USAGE_LAYOUT,
  vgpu_greeting: abi.GREETING,
} as const;

const ENUMS = {
  VGPU_POLICY: abi.POLICY,
  VGPU_LOG: abi.LOG_LEVEL,
  VGPU_LIVE: abi.LIVE_FLAGS,
  VGPU_PRIORITY: abi.PRIORITY,
  VGPU_DENIED: abi.DENIED_API,
  VGPU_TEST: abi.SELF_TEST,
  VGPU_SLOT: abi.SLOT_STATE,
  VGPU_DESCRIPTOR: abi.DESCRIPTOR_FILE,
} as const;

/** Statements about the header that a compiler has to confirm. */
function assertions(): string[] {
  const lines = Object.entries(STRUCTS).flatMap(([struct, fields]) =>
    Object.entries(fields).map(([field, value]) =>
      field === 'structSize'
        ? `sizeof(struct ${struct}) == ${value}`
        : `offsetof(struct ${struct}, ${snakeCase(field)}) == ${value}`,
    ),
  );
  for (const [prefix, members] of Object.entries(ENUMS))
    for (const [member, value] of Object.entries(members))
      lines.push(`${prefix}_${snakeCase(member).toUpperCase()} == ${value}`);
  for (const [name, value] of Object.entries(abi)) {
    if (typeof value === 'string') lines.push(`sizeof VGPU_${name} == ${value.length + 1}`);
    if (typeof value === 'number' || typeof value === 'bigint') lines.push(`VGPU_${name} == ${value}ull`);
  }
  return lines;
}

function compile(lines: readonly string[]): string {
  const source = ['#include "vgpu_abi.h"', ...lines.map((line) => `_Static_assert(${line}, "");`)].join('\n');
  const { stderr } = spawnSync(
    'gcc',
    ['-std=c11', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-I', 'native/include', '-x', 'c', '-'],
    { input: source, encoding: 'utf8', cwd: root },
  );
  return stderr;
}

test('src/abi/vgpu-abi.ts agrees with the C header', (t) => {
  t.equal(execFileSync('node', ['scripts/generate-abi.mjs', '--check'], { cwd: root, encoding: 'utf8' }), '');
  t.end();
});

test('a compiler confirms every offset, size and constant that the codecs use', { skip: noCompiler }, (t) => {
  const lines = assertions();
  t.ok(lines.length > 100, `${lines.length} numbers`);
  t.equal(compile(lines), '');
  t.match(
    compile(['sizeof(struct vgpu_limits) == 1']),
    /static assertion failed/,
    'the compiler rejects a wrong number',
  );
  t.end();
});

test('fields of the C header have the widths that the codecs read', { skip: noCompiler }, (t) => {
  const width = (struct: string, fields: readonly string[], bytes: number): string[] =>
    fields.map((field) => `sizeof(((struct ${struct} *)0)->${field}) == ${bytes}`);
  t.equal(
    compile([
      ...width('vgpu_device_live', ['memory_limit_bytes', 'driver_overhead_bytes', 'steered_at_ns'], 8),
      ...width(
        'vgpu_device_live',
        ['share', 'soft_limit', 'grant_ppm', 'correction_ppm', 'flags', 'generation', 'others_ppm'],
        4,
      ),
      ...width('vgpu_ledger_entry', ['held_bytes', 'tentative_bytes', 'launched', 'object_holders'], 8),
      ...width('vgpu_device_usage', ['launches', 'charged_ns', 'throttled_ns', 'waits', 'samples'], 8),
      ...width('vgpu_device_usage', ['sampled_ns', 'unknown_launches', 'denied[0]', 'denied_bytes', 'peak_bytes'], 8),
      ...width('vgpu_device_identity', ['uuid'], abi.TEXT_BYTES.deviceIdentityUuid),
      ...width('vgpu_device_identity', ['pci_bus_id'], abi.TEXT_BYTES.deviceIdentityPciBusId),
      ...width('vgpu_limits_header', ['allocation'], abi.TEXT_BYTES.limitsHeaderAllocation),
      ...width('vgpu_process_slot', ['name'], abi.TEXT_BYTES.processSlotName),
    ]),
    '',
  );
  t.end();
});
