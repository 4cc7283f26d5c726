import * as z from 'zod';
import { fileReason } from '../../host/file-reason.js';
import type { DeviceNode } from '../../gpu/container-edits.js';
import { StartupError } from '../../host/startup-error.js';
import { readStateFile } from '../../host/state-file.js';

/** `{"<name>":{"devices":["/dev/x"]}}`; only `default` is used, as in tkestack gpu-manager. */
const SCHEMA = z.record(z.string(), z.object({ devices: z.array(z.string().startsWith('/')).default([]) }));

/** Device nodes that every GPU container gets in addition. */
export async function readExtraNodes(path: string | null): Promise<DeviceNode[]> {
  if (path === null) return [];
  let document: unknown;
  try {
    document = JSON.parse(await readStateFile(path));
  } catch (error) {
    throw new StartupError(`--extra-config: ${path}: ${fileReason(error)}`);
  }
  const parsed = SCHEMA.safeParse(document);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new StartupError(`--extra-config: ${path}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'malformed'}`);
  }
  return (parsed.data.default?.devices ?? []).map((device) => ({ hostPath: device, containerPath: device }));
}
