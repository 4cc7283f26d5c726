// Loaded before every test file (.taprc). tap has all processes that a test starts load its own module loader, to know
// what they cover: that doubles the time of each and runs what users run under a loader that users do not have. Nobody
// asks for coverage here.
import processOnSpawn from 'process-on-spawn';

processOnSpawn.removeAllListeners();
processOnSpawn.addListener = () => undefined;
process.env.NODE_OPTIONS = (process.env.NODE_OPTIONS ?? '').replace(/"?--import=\S*@tapjs\S*?"?(?=\s|$)/g, '').trim();
if (process.env.NODE_OPTIONS === '') delete process.env.NODE_OPTIONS;
