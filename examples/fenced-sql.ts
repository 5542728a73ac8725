import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { connect } from '@meerkat/client';
import { type FencedStore, Mutex } from '@meerkat/recipes';
import { TestServer } from '@meerkat/testing';

/** Any SQL database: PostgreSQL, SQLite … @returns how many rows have changed */
type Execute = (sql: string, values: readonly (string | number)[]) => Promise<number>;

await using server = await TestServer.start();
await using ann = await connect(server.connectString);
await using bob = await connect(server.connectString);
const { execute, close } = openDatabase();
await execute('create table account (owner text primary key, balance integer, token integer not null default 0)', []);
await execute('insert into account (owner, balance) values (?, ?)', ['shop', 100]);

// #region store
/** Rows with the token of their last writer. `update` compares and writes in one step. */
const accounts: FencedStore<string, number> = {
  async write(owner, balance, token) {
    const update = 'update account set balance = ?, token = ? where owner = ? and token <= ?';
    // A token has 63 bits, as the largest integer of SQL.
    return (await execute(update, [balance, `${token}`, owner, `${token}`])) === 1;
  },
};
// #endregion

const annsLock = await new Mutex(ann, '/locks/shop').acquire();
console.log(`ann writes: ${await accounts.write('shop', 90, annsLock.token)}`);

// Ann's process is paused, her session expires, and Bob gets the lock.
await server.expireSession(annsLock.sessionId);
const bobsLock = await new Mutex(bob, '/locks/shop').acquire();
console.log(`bob writes: ${await accounts.write('shop', 80, bobsLock.token)}`);

// Ann resumes after her check of `isHeld`, before her write.
console.log(`ann writes: ${await accounts.write('shop', 70, annsLock.token)}`);
console.log(`rows with 80: ${await execute('update account set balance = balance where balance = ?', [80])}`);
await bobsLock.release();
close();

/** SQLite in memory, through Python, because Node.js 20 has no built-in database. */
function openDatabase(): { execute: Execute; close: () => void } {
  const program = [
    'import json, sqlite3, sys',
    'database = sqlite3.connect(":memory:")',
    'for line in sys.stdin:',
    '    print(database.execute(*json.loads(line)).rowcount, flush=True)',
  ];
  const python = spawn('/usr/bin/python3', ['-c', program.join('\n')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  return {
    execute: async (sql, values) => {
      python.stdin.write(`${JSON.stringify([sql, values])}\n`);
      const { value } = await answers.next();
      return Number(value);
    },
    close: () => python.stdin.end(),
  };
}

// Prints:
//   ann writes: true
//   bob writes: true
//   ann writes: false
//   rows with 80: 1
