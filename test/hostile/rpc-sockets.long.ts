import './rpc-sockets.test.js';
