// A store of your own for the quota engine: all records in one JSON file, which one engine owns.
//
//     node node_modules/gpu-manager-quota/examples/quota-custom-store.js FILE
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import {
  createEngine,
  toRecord,
  type Batch,
  type Committed,
  type GroupImage,
  type Loaded,
  type RecordSink,
  type Revision,
  type StateHead,
  type Store,
  type StoredRecord,
} from 'gpu-manager-quota';

/** Parents come before children, and groups before what they hold. */
const ORDER: readonly StoredRecord['kind'][] = ['group', 'workload', 'reservation', 'pod', 'loan'];

class JsonFileStore implements Store {
  readonly exclusive = true;
  readonly #records = new Map<string, StoredRecord>();

  constructor(readonly file: string) {}

  async load(sink: RecordSink): Promise<Loaded> {
    let head: StateHead = { revision: 0, now: 0, lives: 0 };
    if (existsSync(this.file)) {
      const content = JSON.parse(await readFile(this.file, 'utf8')) as { head: StateHead; records: StoredRecord[] };
      head = content.head;
      for (const record of content.records) this.#records.set(`${record.kind} ${record.key}`, record);
    }
    sink.newDictionary();
    for (const kind of ORDER) for (const record of this.#records.values()) if (record.kind === kind) sink.add(record);
    return { head, revisions: new Map() };
  }

  async commit({ head, changes }: Batch): Promise<Committed> {
    for (const change of changes) {
      const key = `${change.kind} ${change.key}`;
      if (change.value === null) this.#records.delete(key);
      else this.#records.set(key, toRecord(change, null));
    }
    // Written beside the file and renamed, so that a crash leaves the old or the new content.
    await writeFile(`${this.file}.new`, JSON.stringify({ head, records: [...this.#records.values()] }), {
      flush: true,
    });
    await rename(`${this.file}.new`, this.file);
    return { ok: true, revisions: new Map() };
  }

  list(): Promise<ReadonlyMap<string, Revision>> {
    throw new Error('only stores that several engines share are listed');
  }

  read(): Promise<readonly GroupImage[]> {
    throw new Error('only stores that several engines share are read again');
  }

  async close(): Promise<void> {}
}

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: quota-custom-store.js FILE');
  process.exit(2);
}

const engine = await createEngine({ store: new JsonFileStore(file) });
if (engine.groups().length === 0) {
  await engine.createGroup({ name: 'vision', hard: { 'limits.cpu': 8 } });
  const podSets = [{ count: 3, limits: { cpu: 2 } }];
  await engine.admit({ workload: { kind: 'Job', name: 'train' }, group: 'vision', podSets });
}
console.log(`limits.cpu used: ${engine.status('vision')?.used.get('limits.cpu')} thousandths of a core`);
await engine.close();
