import { test } from 'tap';
import { holdsClaims } from './killed-agent.js';

test('an agent that is killed at any moment neither loses a claim nor keeps a released one', (t) =>
  holdsClaims(t, Number(process.env.GPU_MANAGER_DRA_KILLS ?? 12)));
