/** One container on a GPU: how its programs use it (see native/bench/tenant.c), and its share. */
export interface TenantRow {
  readonly manner: string;
  /** Cores (hundredths of the GPU). */
  readonly share: number;
  readonly softLimit?: number;
  /** The expected use, where that is not the share: under a soft limit, what the others leave. */
  readonly due?: number;
  /** Programs in the container; one by default. */
  readonly processes?: number;
}

/**
 * What steers: the agent with all counters, the agent on a GPU whose NVML reports nothing about single processes, or
 * the library alone.
 */
export type Steering = 'agent' | 'silent NVML' | 'library alone';

/** One GPU and its containers. */
export interface GpuRow {
  readonly name: string;
  readonly tenants: readonly TenantRow[];
}

/**
 * GPUs that are measured concurrently: as many as this machine's processors can run without delays between the
 * programs.
 */
export interface Round {
  readonly steering: Steering;
  readonly gpus: readonly GpuRow[];
}

/** GPUs that are measured concurrently, at most. */
export const GPUS = 5;

/** Ways of using a GPU that take almost no CPU time: programs sleep while they wait for tokens. */
const CALM = [
  'async:20',
  'async:200',
  'async:2000',
  'async:20000',
  'mixed:200:4',
  'graph:20:20',
  'cooperative:200',
  'burst:200:20:1',
  'shapes',
];
/** Ways that keep a processor busy: their launches wait for the GPU, which the simulated driver does in a busy loop. */
const BUSY = ['sync:20', 'sync:200', 'sync:2000'];

const SHARES = [10, 30, 50, 70, 90];
const FEW_SHARES = [10, 50, 90];

const alone = (manner: string, share: number): GpuRow => side({ manner, share });

const side = (...tenants: TenantRow[]): GpuRow => ({
  name: tenants.map(nameOf).join(' + '),
  tenants,
});

const nameOf = ({ manner, share, softLimit, processes }: TenantRow): string =>
  `${processes === undefined ? '' : `${processes}x `}${manner} @${share}${softLimit === undefined ? '' : ` to ${softLimit}`}`;

/** One container on a GPU. */
export function lonely(quick: boolean): Round[] {
  const shares = quick ? FEW_SHARES : SHARES;
  const rows = CALM.flatMap((manner) => shares.map((share) => alone(manner, share)));
  const calm = Array.from({ length: Math.ceil(rows.length / GPUS) }, (_, at): Round => ({
    steering: 'agent',
    gpus: rows.slice(at * GPUS, (at + 1) * GPUS),
  }));
  const busy = BUSY.flatMap((manner) =>
    FEW_SHARES.map((share): Round => ({ steering: 'agent', gpus: [alone(manner, share)] })),
  );
  const without = (steering: Steering): Round => ({
    steering,
    gpus: ['async:20', 'async:2000', 'mixed:200:4', 'graph:20:20', 'shapes'].map((manner) => alone(manner, 50)),
  });
  return [...calm, ...(quick ? [] : busy), without('library alone'), without('silent NVML')];
}

const NEIGHBOURS: readonly GpuRow[] = [
  side({ manner: 'async:200', share: 30 }, { manner: 'async:200', share: 70 }),
  side({ manner: 'async:20', share: 20 }, { manner: 'async:20000', share: 80 }),
  side({ manner: 'async:2000', share: 10 }, { manner: 'shapes', share: 40 }),
  side({ manner: 'graph:20:20', share: 50 }, { manner: 'mixed:200:4', share: 50 }),
  side({ manner: 'async:200', share: 20 }, { manner: 'async:2000', share: 30 }, { manner: 'async:20', share: 50 }),
  side(
    { manner: 'shapes', share: 25 },
    { manner: 'async:2000', share: 25 },
    { manner: 'cooperative:200', share: 25 },
    { manner: 'async:20000', share: 25 },
  ),
  side(
    { manner: 'async:200', share: 10 },
    { manner: 'async:20', share: 20 },
    { manner: 'graph:20:20', share: 30 },
    { manner: 'shapes', share: 40 },
  ),
  side({ manner: 'async:200', share: 40, processes: 4 }, { manner: 'async:2000', share: 60 }),
  side({ manner: 'async:20000', share: 20 }, { manner: 'async:200', share: 80 }),
];

/** Two to four containers on a GPU. */
export function neighbours(quick: boolean): Round[] {
  const half = Math.ceil(NEIGHBOURS.length / 2);
  const parts = [NEIGHBOURS.slice(0, half), NEIGHBOURS.slice(half)];
  const steerings: Steering[] = quick ? ['agent'] : ['agent', 'library alone', 'silent NVML'];
  return steerings.flatMap((steering) => parts.map((gpus): Round => ({ steering, gpus })));
}

/** Kernels of one function whose durations vary, beside a container that time slices interrupt them for. */
export function varied(): Round[] {
  const manner = 'varied:50:3000';
  return [
    {
      steering: 'agent',
      gpus: [
        side({ manner, share: 20 }, { manner: 'async:20000', share: 50 }),
        side({ manner, share: 50 }, { manner: 'async:20000', share: 20 }),
        side({ manner, share: 50 }, { manner: 'async:200', share: 50 }),
        side({ manner, share: 30 }, { manner, share: 50 }),
      ],
    },
  ];
}

const SOFT: readonly GpuRow[] = [
  side({ manner: 'async:200', share: 30, softLimit: 90, due: 90 }, { manner: 'idle', share: 70, due: 0 }),
  side({ manner: 'async:200', share: 30, softLimit: 90 }, { manner: 'async:2000', share: 70 }),
  side({ manner: 'async:200', share: 20, softLimit: 90, due: 60 }, { manner: 'shapes', share: 40 }),
  side(
    { manner: 'async:200', share: 30, softLimit: 100, due: 50 },
    { manner: 'async:2000', share: 30, softLimit: 100, due: 50 },
  ),
  side(
    { manner: 'shapes', share: 20, softLimit: 100, due: 33 },
    { manner: 'graph:20:20', share: 40, softLimit: 100, due: 66 },
  ),
];

/**
 * Soft limits: beside an idle container, beside busy ones, and two that divide the rest in proportion to their shares.
 */
export function soft(quick: boolean): Round[] {
  return (quick ? (['agent'] as const) : (['agent', 'silent NVML'] as const)).map((steering): Round => ({
    steering,
    gpus: SOFT,
  }));
}
