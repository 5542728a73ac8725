/** Expensive requests that block all writes are throttled with pauses, in which other clients write, at any server. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { ConsoleProcess } from '../harness/console-process.ts';
import { connectCrowd, createRequest } from '../harness/crowd.ts';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { Ensemble, type Member, THREADED } from './ensemble.ts';

const LIMITS = { timeout: 300_000 };
const TIMEOUT_MS = 40_000;
/** Without a pause it would be at most one: a request and its reply take less time than a write. */
const WRITES_IN_PAUSE = 3;
const ATTEMPTS = 5;
const EPHEMERAL = 1;

let ensemble: Ensemble;
let leader: Member;
let follower: Member;

beforeAll(async () => {
  ensemble = await Ensemble.start([{ kind: 'meerkat' }, { kind: 'meerkat' }, THREADED]);
  leader = await ensemble.leader();
  follower = ensemble.members.find((member) => member !== leader)!;
}, LIMITS.timeout);
afterAll(() => ensemble?.dispose());
beforeEach(() => {
  onTestFailed(() => console.log(ensemble.logs));
});

for (const place of ['leader', 'follower'] as const) {
  const memberOf = (here: boolean): Member => ((place === 'leader') === here ? leader : follower);

  test(`a client of the ${place} is paused after a long multi, while others write`, LIMITS, async () => {
    const client = await RawClient.connect(memberOf(true).server.port, { timeoutMs: TIMEOUT_MS });
    // It is paused for some ten seconds.
    const parts = 4096 + 16_000;
    const check = multiHeader(Op.check).ustring('/').int(-1).build();
    const multi = multiOf(new Array<Buffer>(parts).fill(check));
    expect(await writesBehind(memberOf(false), client, multi)).toBe(WRITES_IN_PAUSE);
    client.destroy();
  });

  test(
    `a client of the ${place} with many ephemerals is paused as it creates more, while others write`,
    LIMITS,
    async () => {
      const parent = `/of-${place}`;
      const other = await RawClient.connect(memberOf(false).server.port);
      await other.demand(Op.create, createRequest(parent));
      const owner = await connectCrowd(memberOf(true).server.port, parent, {
        count: 4096,
        pathBytes: 40,
        timeoutMs: TIMEOUT_MS,
      });
      let made = 0;
      const create = (): Buffer =>
        multiHeader(Op.create)
          .raw(createRequest(`${parent}/more-${made++}`, EPHEMERAL))
          .build();
      // It is paused for a second after each of them, which is short for writes on a busy machine.
      let written = 0;
      for (let i = 0; i < ATTEMPTS && written < WRITES_IN_PAUSE; i++) {
        written = await writesBehind(memberOf(false), owner, multiOf(Array.from({ length: 4096 }, create)));
      }
      expect(written).toBe(WRITES_IN_PAUSE);
      owner.destroy();
      await other.close();
    },
  );
}

describeWith(['kazoo'], 'the Python client kazoo', () => {
  test('stays connected during such a pause', LIMITS, async () => {
    const script = fileURLToPath(new URL('../kazoo/pause.py', import.meta.url));
    await using client = new ConsoleProcess('/usr/bin/python3', [script, `127.0.0.1:${leader.server.port}`]);
    await client.waitFor(/done/);
    expect(await client.end()).toBe(0);
  });
});

/**
 * Number of another client's writes that are answered between the reply to a multi and the reply to the read after it.
 * Stops counting once there are enough.
 */
async function writesBehind(at: Member, client: RawClient, multi: Buffer): Promise<number> {
  const other = await RawClient.connect(at.server.port);
  let isAnswered = false;
  let isOver = false;
  let written = 0;
  const write = async (): Promise<void> => {
    await other.demand(Op.setData, record().ustring('/').buffer('x').int(-1).build());
    if (isAnswered && !isOver) written++;
  };
  await write();
  // A request sent before the reply may already have been accepted.
  const read = client
    .demand(Op.multi, multi)
    .then(() => {
      isAnswered = true;
      return client.demand(Op.exists, record().ustring('/').bool(false).build());
    })
    .then(
      () => {
        isOver = true;
      },
      (error: unknown) => {
        if (!isOver) throw error;
      },
    );
  while (!isOver && written < WRITES_IN_PAUSE) await write();
  isOver = true;
  await other.close();
  if (written < WRITES_IN_PAUSE) await read;
  return written;
}

function multiHeader(op: number): ReturnType<typeof record> {
  return record().int(op).bool(false).int(-1);
}

function multiOf(parts: readonly Buffer[]): Buffer {
  return Buffer.concat([...parts, record().int(-1).bool(true).int(-1).build()]);
}
