export { displayTls } from './display-tls.js';
export { type DisplayConfig, openDisplay } from './display.js';
