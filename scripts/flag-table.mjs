// Prints docs/reference/flags.md from the table of flags: npm run docs:flags
import { claimWebhookCommand } from '../dist/src/cli/claim-webhook.js';
import { consoleCommand } from '../dist/src/cli/console.js';
import { quotaServeCommand } from '../dist/src/cli/quota-serve.js';
import { environmentName, RUN_FLAG_GROUPS } from '../dist/src/cli/run-flags.js';

const cell = (text) => text.replaceAll('|', '\\|');

console.log(`# Flags

## Of the node agent

\`gpu-manager run\`; written by \`npm run docs:flags\`. What the command line says wins over the environment, which wins over the default. A switch takes
\`=true\` and \`=false\` too. Underscores in names are taken for dashes, as the original does. As in the original's image, \`LOG_LEVEL\` sets \`--v\`,
and \`EXTRA_FLAGS\` adds flags at the end of the command line.`);
for (const { title, flags } of RUN_FLAG_GROUPS) {
  console.log(`
### ${title}

| flag | environment | default | meaning |
|---|---|---|---|`);
  for (const { name, value, default: standard, help } of flags) {
    const flag = value === null ? `--${name}` : `--${name} <${value}>`;
    console.log(
      `| \`${flag}\` | \`${environmentName(name)}\` | ${standard === '' ? '' : `\`${standard}\``} | ${cell(help)} |`,
    );
  }
}

const options = (command) => {
  console.log(`
| flag | default | meaning |
|---|---|---|`);
  for (const { flags, description, defaultValue, defaultValueDescription } of command.options) {
    const standard = defaultValueDescription ?? (typeof defaultValue === 'boolean' ? '' : (defaultValue ?? ''));
    console.log(`| \`${flags}\` | ${standard === '' ? '' : `\`${standard}\``} | ${cell(description)} |`);
  }
};

console.log(`
## Of the quota service

\`gpu-manager quota serve\`; times in seconds.`);
options(quotaServeCommand());
console.log(`
## Of the webhooks of claims

\`gpu-manager claim-webhook\`; [dra.md](dra.md#pods-that-ask-for-vcuda-core) says what they do.`);
options(claimWebhookCommand());

console.log(`
## Of the console

\`gpu-manager console\`; [console.md](console.md) says what it shows.`);
options(consoleCommand());
