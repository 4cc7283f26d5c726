import { readFileSync } from 'node:fs';
import { packageFile } from './package-files.js';

/** The version of this package. */
export const VERSION = (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
