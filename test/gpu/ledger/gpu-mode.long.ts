import './gpu-mode.test.js';
