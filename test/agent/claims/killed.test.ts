import { test } from 'tap';
import { holdsClaims } from './killed-agent.js';

test('an agent that is killed neither loses a claim nor keeps a released one', (t) => holdsClaims(t, 3));
