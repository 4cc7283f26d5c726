import './init-containers.test.js';
