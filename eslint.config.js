import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['build/', 'dist/', 'native/', 'node_modules/', 'src/rpc/gen/', '.tap/'] },
  eslint.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['eslint.config.js', 'scripts/*.mjs', 'examples/*.mjs'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      // A rejected promise that nobody awaits ends the daemon: these two are the reason for typed linting.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/require-await': 'off',
      // A bundle with the object z holds all of zod, including its messages in 50 languages.
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ImportDeclaration[source.value="zod"] > ImportSpecifier[imported.name="z"]',
          message: "Write: import * as z from 'zod'",
        },
      ],
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  {
    // tap's test() returns a promise that tap itself awaits.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: ['test', 't.test', 't.rejects', 't.resolves', 't.resolveMatch'],
          allowForKnownSafePromises: [{ from: 'package', name: 'Promise', package: 'tap' }],
        },
      ],
      'no-console': 'off',
    },
  },
  { files: ['bench/**/*.ts', 'scripts/*.mjs', 'examples/*', 'src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: { process: 'readonly', console: 'readonly', URL: 'readonly' } },
  },
  {
    files: ['src/page/parts/*.js', 'src/agent/display/page/*.js', 'src/console/page/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'AbortController',
          'CSS',
          'Event',
          'HTMLInputElement',
          'IntersectionObserver',
          'ResizeObserver',
          'TextDecoderStream',
          'cancelAnimationFrame',
          'clearTimeout',
          'document',
          'fetch',
          'getComputedStyle',
          'localStorage',
          'location',
          'matchMedia',
          'requestAnimationFrame',
          'sessionStorage',
          'setTimeout',
          'window',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
