// Prints one line of counts from vitest's JSON reports, and exits with the matching status.
//
//   node summary.mjs REPORT STATUS [REPORT STATUS …]     STATUS is the exit status of vitest
import { readFileSync } from 'node:fs';

const words = process.argv.slice(2);
const runs = Array.from({ length: words.length / 2 }, (_, i) => ({
  files: readReport(words[2 * i]),
  status: words[2 * i + 1],
}));
const report = runs.flatMap(({ files }) => files);
const tests = report.flatMap((file) => file.assertionResults.map((test) => ({ ...test, file: file.name })));
const counts = { passed: 0, failed: 0, skipped: 0 };
for (const { status } of tests) counts[status === 'passed' || status === 'failed' ? status : 'skipped']++;

// A file that could not be loaded or whose set-up failed counts as failed, although none of its tests failed.
const brokenFiles = report.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
);
for (const { name, message } of brokenFiles) console.log(`failed as a whole: ${name}\n${message}`);
counts.failed += brokenFiles.length;
// An error outside of tests, or a missing report.
for (const { files, status } of runs) {
  if (status !== '0' && !files.some((file) => file.status === 'failed')) counts.failed++;
}

// Repeated at the end, for readers who see only the last lines.
for (const { file, fullName, failureMessages } of tests.filter(({ status }) => status === 'failed')) {
  console.log(`failed: ${file}: ${fullName}\n${failureMessages.join('\n').slice(0, 4000)}`);
}

const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
for (const { file, fullName } of skipped) console.log(`skipped: ${file}: ${fullName}`);
const isSkipAllowed = process.env.CI !== 'true';

console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 || counts.passed === 0 || (counts.skipped > 0 && !isSkipAllowed) ? 1 : 0;

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).testResults;
  } catch (error) {
    console.log(`vitest left no report: ${error.message}`);
    return [];
  }
}
