import './fit-simulation.test.js';
