import './elf-symbols.test.js';
