// Ends a run of the tests with one line of counts, from vitest's JSON report, and with the exit status that they mean.
//
//   node summary.mjs REPORT STATUS     STATUS is that of vitest itself
import { readFileSync } from 'node:fs';

const [reportFile, vitestStatus] = process.argv.slice(2);
const report = readReport();
const tests = report.flatMap((file) => file.assertionResults.map((test) => ({ ...test, file: file.name })));
const counts = { passed: 0, failed: 0, skipped: 0 };
for (const { status } of tests) counts[status === 'passed' || status === 'failed' ? status : 'skipped']++;

// A file that could not be loaded, or whose set-up failed, has failed although none of its tests has.
const brokenFiles = report.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
);
for (const { name, message } of brokenFiles) console.log(`failed as a whole: ${name}\n${message}`);
counts.failed += brokenFiles.length;
// An error outside every test, or a report that is not there.
if (vitestStatus !== '0' && counts.failed === 0) counts.failed = 1;

const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
for (const { file, fullName } of skipped) console.log(`skipped: ${file}: ${fullName}`);
const isSkipAllowed = process.env.CI !== 'true';

console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 || counts.passed === 0 || (counts.skipped > 0 && !isSkipAllowed) ? 1 : 0;

function readReport() {
  try {
    return JSON.parse(readFileSync(reportFile, 'utf8')).testResults;
  } catch (error) {
    console.log(`vitest left no report: ${error.message}`);
    return [];
  }
}
