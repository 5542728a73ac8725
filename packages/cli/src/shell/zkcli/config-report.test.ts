import { PassThrough } from 'node:stream';
import { parseConfig } from '@meerkat/console/membership';
import { expect, test } from 'vitest';
import { Paint } from '../../output/paint.ts';
import { Report } from '../../output/report.ts';
import { describeConfig } from './config-report.ts';

async function described(config: string): Promise<string> {
  const stdout = new PassThrough();
  const io = { stdin: new PassThrough(), stdout, stderr: new PassThrough(), env: {} };
  await describeConfig(new Report(io, 'table', new Paint(false)), parseConfig(config), false);
  return String(stdout.read());
}

test('where no members are stored both reasons are told: a member of an ensemble stores them with reconfigEnabled alone', async () => {
  expect(await described('')).toBe(
    'no members are stored: the server has no ensemble, or reconfigEnabled is not true there\n',
  );
});

test('members that are stored are shown as they are', async () => {
  const config = 'server.1=zk1:2888:3888:participant;2181\nversion=100000003';
  expect(await described(`${config}\n`)).toBe(`${config}\n`);
});
