import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** A program that is a client of MPS. */
export interface MpsClient {
  /** Pid on the host. */
  readonly pid: number;
  readonly server: string;
  readonly namespace: string;
}

/** What a namespace gives each of its clients. */
export interface MpsLimits {
  /** Of the SMs of a GPU, 1 to 100; the driver rounds down. */
  readonly percentage: number;
  /** 0: normal; 1: below normal. A program can set its own, so it is a hint. */
  readonly priority: 0 | 1;
}

/** What the daemon has at one moment. */
export interface MpsState {
  /** Names of the servers, and the pid of each. */
  readonly servers: ReadonlyMap<string, number>;
  /** Namespaces other than `default`, as `SERVER/NAME`. */
  readonly namespaces: ReadonlySet<string>;
}

/** A command did not succeed; the message is the program's. */
export class MpsError extends Error {}

const COMMAND_MS = 5_000;
const PLAIN = '--format=csv,noheader';

/**
 * The control language of MPS, version 3, as NVIDIA documents it for drivers 615 and 620: each command is a run of
 * `nvidia-cuda-mps-control`, which finds the daemon through its pipe directory.
 */
export class MpsControl {
  readonly program: string;
  /** The directory in which the daemon makes a folder for each server, and in it one for each namespace. */
  readonly directory: string;

  constructor(program: string, directory: string) {
    this.program = program;
    this.directory = directory;
  }

  /** Variables of the daemon, and of each command. */
  get environment(): NodeJS.ProcessEnv {
    const { CUDA_VISIBLE_DEVICES: _, ...others } = process.env;
    return {
      ...others,
      CUDA_MPS_PIPE_DIRECTORY: this.directory,
      CUDA_MPS_LOG_DIRECTORY: join(this.directory, 'log'),
      CUDA_MPS_PROTOCOL_VERSION: '3',
    };
  }

  /** The folder that clients of a namespace name in CUDA_MPS_PIPE_DIRECTORY. */
  folderOf(server: string, namespace: string): string {
    return join(this.directory, server, namespace);
  }

  /** Null if no daemon answers. */
  async state(): Promise<MpsState | null> {
    try {
      const servers = rowsOf(await this.#run('server', 'list', PLAIN), 3);
      const namespaces = rowsOf(await this.#run('namespace', 'list', PLAIN), 2);
      return {
        servers: new Map(servers.map(([name = '', , pid]) => [name, Number(pid)])),
        namespaces: new Set(
          namespaces.flatMap(([name, server]) => (name === 'default' ? [] : [`${server ?? ''}/${name ?? ''}`])),
        ),
      };
    } catch (error) {
      if (error instanceof MpsError) return null;
      throw error;
    }
  }

  async clients(): Promise<readonly MpsClient[]> {
    const rows = rowsOf(await this.#run('client', 'list', '--all', PLAIN), 4);
    return rows.map(([pid, server = '', , namespace = '']) => ({ pid: Number(pid), server, namespace }));
  }

  async createServer(name: string, gpuUuid: string): Promise<void> {
    await this.#run('server', 'create', name, `--allowed-devices=${gpuUuid}`);
  }

  /** Ends the clients of the server. */
  async deleteServer(name: string): Promise<void> {
    await this.#run('server', 'delete', name, '--force');
  }

  async createNamespace(server: string, name: string): Promise<void> {
    await this.#run('namespace', 'create', name, `--server=${server}`);
  }

  /** Holds for programs that become clients from now on. */
  async setLimits(server: string, name: string, { percentage, priority }: MpsLimits): Promise<void> {
    await this.#run(
      'namespace',
      'set',
      name,
      `--server=${server}`,
      `--active-thread-percentage=${percentage}`,
      `--client-priority=${priority}`,
    );
  }

  /** Ends the clients of the namespace. */
  async deleteNamespace(server: string, name: string): Promise<void> {
    await this.#run('namespace', 'delete', name, `--server=${server}`, '--force');
  }

  /** Ends a client so that its neighbours go on, which they do not if it is killed while it works. */
  async terminate(pid: number): Promise<void> {
    await this.#run('client', 'terminate', String(pid));
  }

  /** Ends the daemon, its servers and their clients. */
  async quit(): Promise<void> {
    await this.#run('-q');
  }

  #run(...words: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { env: this.environment, timeout: COMMAND_MS, killSignal: 'SIGKILL' } as const;
      execFile(this.program, words, options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new MpsError(`${words.slice(0, 3).join(' ')}: ${stderr.trim() || error.message}`));
      });
    });
  }
}

/** Rows of CSV, of which the first fields contain no comma. */
function rowsOf(text: string, fields: number): string[][] {
  return text
    .split('\n')
    .map((line) => line.split(','))
    .filter((row) => row.length >= fields);
}

/** The server of a GPU: one per GPU, so that programs on other GPUs do not fail with those on it. */
export function serverOf(gpuUuid: string): string {
  return `g${gpuUuid.toLowerCase().replace(/[^a-z0-9]/gu, '')}`.slice(0, 64);
}

/** The namespace of a slice. */
export function namespaceOf(allocation: string): string {
  return `s${allocation.toLowerCase().replace(/[^a-z0-9_]/gu, '_')}`.slice(0, 64);
}
