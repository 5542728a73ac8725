import fs, { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { AuditEntry } from '@meerkat/core';
import { OPEN_ACL } from '@meerkat/protocol';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { type AdminEvent, fieldsOf, formatAuditLine } from './audit-line.ts';
import { AuditLog } from './audit-log.ts';

const ENTRY: AuditEntry = {
  operation: 'create',
  sessionId: -2n,
  client: { users: ['ann', '127.0.0.1'], host: '127.0.0.1' },
  path: '/a',
  mode: 3,
  acl: null,
  isSuccess: true,
};

describe('a line of the audit log', () => {
  test('has the fields of Apache in their order, and leaves out what does not apply', () => {
    expect(formatAuditLine(fieldsOf(ENTRY, 'zk'))).toBe(
      'session=0xfffffffffffffffe\tuser=ann,127.0.0.1\tip=127.0.0.1\toperation=create\tznode=/a\tznode_type=ephemeral_sequential\tresult=success',
    );
    const acl = [...OPEN_ACL, { perms: 1, scheme: 'ip', id: '10.0.0.1' }];
    const setAcl: AuditEntry = { ...ENTRY, operation: 'setAcl', mode: null, acl, isSuccess: false };
    expect(formatAuditLine(fieldsOf(setAcl, 'zk'))).toMatch(
      /operation=setAcl\tznode=\/a\tacl=world:anyone:cdrwaip:10.0.0.1:r\tresult=failure$/,
    );
    expect(formatAuditLine(fieldsOf({ operation: 'serverStop', result: 'invoked' }, 'zk'))).toBe(
      'user=zk\toperation=serverStop\tresult=invoked',
    );
    const ended: AuditEntry = {
      ...ENTRY,
      operation: 'ephemeralZNodeDeletionOnSessionCloseOrExpire',
      client: null,
      mode: null,
    };
    expect(formatAuditLine(fieldsOf(ended, 'zk'))).toBe(
      'session=0xfffffffffffffffe\tuser=zk\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/a\tresult=success',
    );
  });

  test('cannot be forged by what clients choose', () => {
    const forged: AuditEntry = {
      ...ENTRY,
      client: { users: ['x\nuser=root'], host: '127.0.0.1' },
      path: '/a\tresult=success\u2028',
      isSuccess: false,
    };
    const line = formatAuditLine(fieldsOf(forged, 'zk'));
    expect(line.split('\n')).toHaveLength(1);
    expect(line).toContain('user=x\\u000auser=root\t');
    expect(line).toContain('znode=/a\\u0009result=success\\u2028\t');
  });
});

test('what an administrator has asked for names who it was, and a session that ends', () => {
  const event: AdminEvent = {
    operation: 'endSession',
    sessionId: -2n,
    caller: { users: ['ann'], host: '10.0.0.9' },
    result: 'invoked',
  };
  expect(formatAuditLine(fieldsOf(event, 'zk'))).toBe(
    'session=0xfffffffffffffffe\tuser=ann\tip=10.0.0.9\toperation=endSession\tresult=invoked',
  );
  expect(formatAuditLine(fieldsOf({ ...event, operation: 'shed', sessionId: null, result: 'success' }, 'zk'))).toBe(
    'user=ann\tip=10.0.0.9\toperation=shed\tresult=success',
  );
});

describe('the audit log', () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-'));
  const path = join(directory, 'audit.log');
  afterAll(() => rmSync(directory, { recursive: true }));

  test('appends lines to its file, which may be renamed at any time', async () => {
    const log = new AuditLog({ path, format: 'text' }, () => {});
    log.add(ENTRY);
    log.add({ ...ENTRY, isSuccess: false });
    await log.flush();
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO {2}session=0xf.*result=success$/),
      expect.stringMatching(/ ERROR session=0xf.*result=failure$/),
    ]);
    renameSync(path, `${path}.1`);
    log.add({ operation: 'serverStart', result: 'success' });
    await log.flush();
    expect(readFileSync(path, 'utf8')).toContain(`user=${userInfo().username}\toperation=serverStart`);
  });

  test('may be JSON', async () => {
    const json = join(directory, 'audit.json');
    const log = new AuditLog({ path: json, format: 'json' }, () => {});
    log.add(ENTRY);
    await log.flush();
    expect(JSON.parse(readFileSync(json, 'utf8'))).toMatchObject({
      level: 'info',
      session: '0xfffffffffffffffe',
      user: 'ann,127.0.0.1',
      znode_type: 'ephemeral_sequential',
    });
  });

  test('says how many lines it has lost when it cannot write', async () => {
    const said: string[] = [];
    const log = new AuditLog({ path: join(directory, 'missing', 'audit.log'), format: 'text' }, (m) => said.push(m));
    log.add(ENTRY);
    log.add(ENTRY);
    await log.flush();
    expect(said).toEqual([expect.stringMatching(/has lost 2 lines: ENOENT/)]);
  });

  test('lines that keep coming are written in few batches, and all of them at a flush', async () => {
    const file = join(directory, 'batches.log');
    const log = new AuditLog({ path: file, format: 'text' }, () => {});
    // The pause between two batches does not end by itself.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const opened = vi.spyOn(fs, 'appendFile');
    syncBuiltinESMExports();
    for (let turn = 0; turn < 200; turn++) {
      log.add(ENTRY);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const batches = opened.mock.calls.length;
    await log.flush();
    vi.useRealTimers();
    opened.mockRestore();
    syncBuiltinESMExports();
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(200);
    expect(batches).toBe(1);
  });
});
