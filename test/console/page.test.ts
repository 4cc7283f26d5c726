/** All tests that look at the page of the console in a browser, in one process, which has one browser. */
import './cluster-page.js';
import './history-page.js';
import './kubectl-proxy.js';
import './proxied-page.js';
import './views-page.js';
