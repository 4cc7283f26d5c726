import './elf.test.js';
