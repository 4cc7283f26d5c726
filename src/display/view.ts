/** One container's GPUs for people and dashboards: requests from the ledger, usage from the last sample. */
export interface ContainerUsage {
  readonly podUid: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Value of the environment variable SUBMITTER, and of the annotation clusterName; empty where absent. */
  readonly user: string;
  readonly cluster: string;
  /** Hundredths of a GPU, over all GPUs of the container. */
  readonly requestedCores: number;
  /** Bytes; the whole of its cards where no memory was asked for. */
  readonly requestedMemoryBytes: number;
  readonly devices: readonly DeviceUsage[];
}

export interface DeviceUsage {
  readonly gpuIndex: number;
  readonly pciBusId: string;
  readonly memoryBytes: number;
  /** Percent of the card's multiprocessors. */
  readonly usedPercent: number;
  readonly usedMemoryBytes: number;
  readonly pids: readonly number[];
}

/** What the display needs of the agent. All answers come from memory. */
export interface NodeView {
  readonly nodeName: string;
  readonly version: string;
  graph(): string;
  containers(): readonly ContainerUsage[];
  /** Empty when the agent can serve pods; else what it waits for. */
  notReady(): readonly string[];
}
