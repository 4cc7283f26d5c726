import tap from 'tap';
import { SharedPages } from '../page/shared-pages.js';

/** The pages of all tests of the console: one browser for the process. */
export const consolePages = new SharedPages();

tap.teardown(() => consolePages.close());
