import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import * as greeting from '../../src/abi/greeting.js';
import * as limits from '../../src/abi/limits-file.js';
import * as usage from '../../src/abi/usage-file.js';

const native = fileURLToPath(new URL('../../../native/', import.meta.url));
const noCompiler = spawnSync('gcc', ['--version']).status === 0 ? false : 'gcc is not installed';

/** `name -> rest of the line`, as the compiler sees the header. */
function compiledHeader(): Map<string, string> {
  const directory = mkdtempSync(join(tmpdir(), 'vgpu-abi-'));
  try {
    const program = join(directory, 'abi_print');
    execFileSync('gcc', [
      '-std=c11',
      '-Wall',
      '-Wextra',
      '-Werror',
      '-I',
      join(native, 'include'),
      '-o',
      program,
      join(native, 'test/abi_print.c'),
    ]);
    const lines = execFileSync(program, { encoding: 'utf8' }).trim().split('\n');
    return new Map(lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const STRUCTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  vgpu_limits_header: limits.LIMITS_HEADER,
  vgpu_device_identity: limits.DEVICE_IDENTITY,
  vgpu_device_live: limits.DEVICE_LIVE,
  vgpu_limits: limits.LIMITS_LAYOUT,
  vgpu_usage_header: usage.USAGE_HEADER,
  vgpu_device_usage: usage.DEVICE_USAGE,
  vgpu_process_slot: usage.PROCESS_SLOT,
  vgpu_object: usage.SHARED_OBJECT,
  vgpu_ledger_entry: usage.LEDGER_ENTRY,
  vgpu_usage: usage.USAGE_LAYOUT,
  vgpu_greeting: greeting.GREETING,
};

const deniedApis = Object.fromEntries(
  usage.DENIED_APIS.map((api, index) => [`VGPU_DENIED_${api.toUpperCase()}`, index]),
);
const CONSTANTS: Readonly<Record<string, number | bigint | string>> = {
  VGPU_ABI_VERSION: limits.ABI_VERSION,
  VGPU_MAX_DEVICES: limits.MAX_DEVICES,
  VGPU_MAX_PROCESSES: usage.MAX_PROCESSES,
  VGPU_LIMITS_MAGIC: limits.LIMITS_MAGIC,
  VGPU_USAGE_MAGIC: usage.USAGE_MAGIC,
  VGPU_GREETING_MAGIC: greeting.GREETING_MAGIC,
  VGPU_PPM_WHOLE: limits.PPM_WHOLE,
  VGPU_STEERING_STALE_NS: limits.STEERING_STALE_MS * 1_000_000,
  VGPU_POLICY_DENY_UNLISTED: limits.POLICY.denyUnlisted,
  VGPU_LOG_NONE: limits.LOG_LEVEL.none,
  VGPU_LOG_ERROR: limits.LOG_LEVEL.error,
  VGPU_LOG_WARNING: limits.LOG_LEVEL.warning,
  VGPU_LOG_INFO: limits.LOG_LEVEL.info,
  VGPU_LOG_DEBUG: limits.LOG_LEVEL.debug,
  VGPU_LIVE_ALONE: limits.LIVE_FLAG.alone,
  ...deniedApis,
  VGPU_TEST_DRIVER_FOUND: usage.SELF_TEST.driverFound,
  VGPU_TEST_LOOKUP_KNOWN: usage.SELF_TEST.lookupKnown,
  VGPU_TEST_DEVICES_MATCHED: usage.SELF_TEST.devicesMatched,
  VGPU_TEST_SESSION_OPEN: usage.SELF_TEST.sessionOpen,
  VGPU_TEST_EVENTS_WORK: usage.SELF_TEST.eventsWork,
  VGPU_SLOT_FREE: usage.SLOT_STATE.free,
  VGPU_SLOT_LIVE: usage.SLOT_STATE.live,
  VGPU_SLOT_RECLAIMING: usage.SLOT_STATE.reclaiming,
  VGPU_SLOT_PID_SHIFT: 2,
  VGPU_SLOT_PID_BITS: 22,
  VGPU_SLOT_START_SHIFT: 24,
  VGPU_LIMITS_FILE: limits.LIMITS_FILE_NAME,
  VGPU_USAGE_FILE: usage.USAGE_FILE_NAME,
};

const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

test('the codecs and the C header agree on every offset, size and constant', { skip: noCompiler }, (t) => {
  const header = compiledHeader();
  const ours = new Map<string, string>();
  for (const [name, value] of Object.entries(CONSTANTS)) ours.set(name, String(value));
  for (const [struct, fields] of Object.entries(STRUCTS)) {
    for (const [field, offset] of Object.entries(fields)) ours.set(`${struct}.${field}`, String(offset));
  }
  // The compiler also prints sizes of fields; offsets and the sizes of structures settle the layout.
  const theirs = new Map(
    [...header].map(([name, value]) => {
      const dot = name.indexOf('.');
      return dot < 0 ? [name, value] : [name.slice(0, dot + 1) + camelCase(name.slice(dot + 1)), value.split(' ')[0]];
    }),
  );
  t.same(Object.fromEntries(ours), Object.fromEntries(theirs));
  t.end();
});

test('fields of the C header have the widths that the codecs read', { skip: noCompiler }, (t) => {
  const compiled = compiledHeader();
  const width = (field: string): number => Number(compiled.get(field)?.split(' ')[1]);
  for (const field of ['memory_limit_bytes', 'driver_overhead_bytes', 'steered_at_ns'])
    t.equal(width(`vgpu_device_live.${field}`), 8, field);
  for (const field of ['share', 'soft_limit', 'grant_ppm', 'correction_ppm', 'flags', 'generation'])
    t.equal(width(`vgpu_device_live.${field}`), 4, field);
  for (const field of ['held_bytes', 'tentative_bytes', 'last_charge_ns'])
    t.equal(width(`vgpu_ledger_entry.${field}`), 8, field);
  for (const field of [
    'launches',
    'charged_ns',
    'throttled_ns',
    'waits',
    'samples',
    'sampled_ns',
    'unknown_launches',
    'peak_bytes',
  ]) {
    t.equal(width(`vgpu_device_usage.${field}`), 8, field);
  }
  t.equal(width('vgpu_device_usage.denied'), 16 * 8);
  t.equal(width('vgpu_device_identity.uuid'), 64);
  t.equal(width('vgpu_device_identity.pci_bus_id'), 32);
  t.equal(width('vgpu_limits_header.allocation'), 64);
  t.equal(width('vgpu_process_slot.name'), 16);
  t.end();
});
