import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { auditedAddresses } from './addresses.ts';

test('an audit log tells who the session of a txn was, in Apache’s layout and ours', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'audit.log');
  const lines = [
    // Documented for zookeeper.audit.log of Apache's 3.8: fields with tabs between.
    '2026-03-01 10:00:00,001 INFO audit.Log4jAuditLogger: session=0x19344730000\tuser=10.0.0.5\tip=10.0.0.5\toperation=create\tznode=/a\tznode_type=persistent\tresult=success',
    '2026-03-01 10:00:01.001 INFO  session=0xff20a2977670001\tuser=ann,10.0.0.6\tip=10.0.0.6\toperation=delete\tznode=/a b\tresult=success',
    '2026-03-01 10:00:02.001 INFO  user=root\toperation=serverStart\tresult=success',
    'session=0xzz\tip=1',
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
  const found = new Map<bigint, string>();
  await auditedAddresses(path, found);
  expect([...found]).toEqual([
    [0x19344730000n, '10.0.0.5'],
    [0xff20a2977670001n, '10.0.0.6 (ann,10.0.0.6)'],
  ]);
});
