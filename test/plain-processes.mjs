// Loaded in every test process before anything else (.taprc). tap has test files, and all processes that they start,
// load its own module loader, to know what they cover: that doubles the CPU time of most test files, and runs what users
// run under a loader that users do not have. Nobody asks for coverage here.
import { readFileSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import v8 from 'node:v8';

// Code is optimized after six times as much work as usual: most of what a test file runs, it runs too seldom to win back
// the time of the optimizing compiler, which is a third of the CPU time of some.
v8.setFlagsFromString('--interrupt-budget=400000');

module.register = () => undefined;
// tap's own switch, which holds for the process with this id.
process.env.__TAPJS_PROCESSINFO_TESTING_NO_REGISTER__ = String(process.pid);
// Set by .taprc for this process only.
delete process.env.NODE_OPTIONS;

// tap's runner sets this limit; a test file that runs by itself has the same.
const { FILE_LIMIT_SECONDS } = await import('../dist/test/harness/time-factor.js');
process.env.TAP_TIMEOUT ??= String(FILE_LIMIT_SECONDS);

// The CPU seconds of this process and of those that it has waited for, for the runner of the tests (scripts/test-files.mjs).
const cost = process.env.GPU_MANAGER_TEST_COST;
delete process.env.GPU_MANAGER_TEST_COST;
if (cost !== undefined)
  process.on('exit', () => {
    // After the name, which may hold spaces: proc_pid_stat(5), utime, stime, cutime and cstime in hundredths of a second.
    const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ');
    const hundredths = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    writeFileSync(cost, String(hundredths / 100));
  });
