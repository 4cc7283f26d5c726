import { createInterface } from 'node:readline';
import { SteeringAgent, type SliceLimits } from '../sim/agent.js';
import { SimulatedMachine } from '../sim/machine.js';

/**
 * The steering agent of one machine as a program, because a process can load the simulated driver for one machine only:
 * each line of its input is the limits of a slice (JSON), each line of its output that slice's directory. It ends with
 * its input.
 *
 *     agent-process DIRECTORY UUID     the machine's directory, its GPU
 */
const agent = await SteeringAgent.start(SimulatedMachine.at(process.argv[2] ?? '', 1, process.argv[3] ?? null));
for await (const line of createInterface({ input: process.stdin }))
  console.log(await agent.slice(JSON.parse(line) as SliceLimits));
await agent.stop();
process.exit(0);
