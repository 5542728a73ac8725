// Runs the TypeScript of the comparison without a build, with the transformer of the tests.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

await runnerImport(fileURLToPath(new URL('./main.ts', import.meta.url)));
