import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { Op, RawClient } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { SERVER_KINDS, type ServerKind, type ServerProcess } from '../harness/server-process.ts';
import { Ensemble } from './ensemble.ts';

const ROLES = ['leader', 'follower', 'observer'] as const;
type Role = (typeof ROLES)[number];

/** Words with deterministic answers; `crst`, `srst` and `stmk` change state, and `envi` describes the process. */
const WORDS = ['srvr', 'stat', 'dump', 'conf', 'cons', 'isro', 'dirs', 'wchs', 'wchc', 'wchp', 'ruok', 'gtmk'];

/** Admin commands with deterministic answers. */
const COMMANDS =
  'configuration connections dump leader server_stats stats voting_view watches watches_by_path watch_summary zabstate ruok hash'.split(
    ' ',
  );

/** Lines of `mntr` on the ensemble, sessions and the tree, which are equal after the same requests. */
const SAME = new Set(
  `server_state peer_state quorum_size learners synced_followers synced_non_voting_followers synced_observers observer_master_id
  last_proposal_size min_proposal_size max_proposal_size proposal_count looking_count num_alive_connections outstanding_requests
  znode_count ephemerals_count watch_count global_sessions local_sessions last_client_response_size max_client_response_size
  digest_mismatches_count unrecoverable_error_count stale_sessions_expired connection_rejected auth_failed_count`.split(
    /\s+/,
  ),
);

/** Metrics of releases newer than the compared one. */
const NEWER = new Set([
  ...['snapshot_error_count', 'snapshot_rate_limited_count', 'restore_error_count', 'restore_rate_limited_count'],
  ...['avg', 'min', 'max', 'cnt', 'sum'].map((part) => `${part}_restore_time`),
]);

/** Metrics per learner, by server id. */
const OF_LEARNERS = /_\d+_(learner_handler_qp_size|learner_handler_qp_time_ms|ack_latency)$/;
/** Metrics per namespace: they depend on which client was connected to which server. */
const OF_NAMESPACES = /_(read|write)_per_namespace$/;

describeWith(['apache'], 'a leader, a follower and an observer', () => {
  const answers = new Map<ServerKind, Map<Role, Map<string, string>>>();
  const output: string[] = [];

  beforeAll(async () => {
    await Promise.all(SERVER_KINDS.map(async (kind) => answers.set(kind, await askEverything(kind, output))));
  });
  afterAll(() => output.splice(0));

  function answer(kind: ServerKind, role: Role, word: string): string {
    return answers.get(kind)?.get(role)?.get(word) ?? '';
  }

  describe.each(ROLES)('%s', (role) => {
    test.each(WORDS)("answers %s like Apache's", (word) => {
      onTestFailed(() => console.log(output.join('\n')));
      const theirs = normalize(answer('apache', role, word));
      expect(theirs).not.toEqual([]);
      expect(normalize(answer('meerkat', role, word))).toEqual(theirs);
    });

    test.each(COMMANDS)("answers the admin command %s like Apache's", (name) => {
      const theirs = normalizeAdmin(answer('apache', role, `/${name}`));
      expect(theirs).not.toBe('');
      expect(normalizeAdmin(answer('meerkat', role, `/${name}`))).toBe(theirs);
    });

    test("reports the same metrics in mntr as Apache's, and no others", () => {
      const theirs = metrics(answer('apache', role, 'mntr'));
      const ours = metrics(answer('meerkat', role, 'mntr'));
      const same = (all: ReadonlyMap<string, string>): Record<string, string> =>
        Object.fromEntries([...all].filter(([key]) => SAME.has(key)).sort());
      expect(same(ours)).toEqual(same(theirs));
      const isCompared = (key: string): boolean => !OF_LEARNERS.test(key) && !OF_NAMESPACES.test(key);
      const names = [...ours.keys()].filter((key) => isCompared(key) && !NEWER.has(key));
      expect(names.toSorted()).toEqual([...theirs.keys()].filter(isCompared).toSorted());
      for (const key of NEWER) expect(ours.has(key), key).toBe(true);
      // Another server may lead, but each leader has two learners. Apache's only measures every thousandth ACK.
      const ofLearners = (all: ReadonlyMap<string, string>): string[] =>
        [...all.keys()].filter((key) => OF_LEARNERS.test(key)).map((key) => key.replace(/_\d+_/, '_N_'));
      const isAck = (key: string): boolean => key.endsWith('_ack_latency');
      expect(
        ofLearners(ours)
          .filter((key) => !isAck(key))
          .toSorted(),
      ).toEqual(ofLearners(theirs).toSorted());
      expect(ofLearners(ours).filter(isAck)).toHaveLength(role === 'leader' ? 2 * 9 : 0);
    });
  });
});

/** Starts an ensemble, runs the same requests through each server, and sends every word to every server. */
async function askEverything(kind: ServerKind, output: string[]): Promise<Map<Role, Map<string, string>>> {
  const ensemble = await Ensemble.start([
    { kind, hasAdmin: true },
    { kind, hasAdmin: true },
    { kind, isObserver: true, hasAdmin: true },
  ]);
  try {
    const leader = await ensemble.leader();
    const byRole = ensemble.members.map((member) => {
      const role: Role = member.isObserver ? 'observer' : member === leader ? 'leader' : 'follower';
      return [role, member] as const;
    });
    const clients: RawClient[] = [];
    for (const [role, { server }] of byRole) {
      const client = await RawClient.connect(server.port, { timeoutMs: 40_000, isSilent: true });
      clients.push(client);
      const path = record().ustring(`/${role}`);
      await client.demand(Op.create, path.buffer('data').acls(OPEN_ACL).int(1).build());
      await client.demand(Op.getData, record().ustring(`/${role}`).bool(true).build());
    }
    // Every server has applied everything.
    for (const client of clients) await client.demand(Op.sync, record().ustring('/').build());
    const answers = new Map<Role, Map<string, string>>();
    for (const [role, { server }] of byRole) {
      answers.set(role, await askUndisturbed(server));
    }
    for (const client of clients) await client.close();
    return answers;
  } finally {
    output.push(ensemble.logs);
    await ensemble.dispose();
  }
}

/** Asks again when an unknown client was connected, which may happen on a recently reused port. */
async function askUndisturbed(server: ServerProcess): Promise<Map<string, string>> {
  const isAlone = async (): Promise<boolean> => {
    // The client, and this connection.
    const connections = (await server.fourLetterWord('cons')).match(/^ \//gm) ?? [];
    return connections.length === 2;
  };
  for (;;) {
    const words = new Map<string, string>();
    const wasAlone = await isAlone();
    for (const word of [...WORDS, 'mntr']) words.set(word, await server.fourLetterWord(word));
    for (const name of COMMANDS) words.set(`/${name}`, await server.askAdmin(`/commands/${name}`));
    if (wasAlone && (await isAlone())) return words;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * The sorted lines of an answer, because many are unordered; without values that differ between runs: ports, times,
 * file sizes, session ids.
 */
function normalize(text: string): readonly string[] {
  const lines = text
    // The first byte of a session id is the server's id.
    .replaceAll(/0x[0-9a-f]{13,16}\b/g, (id) => `session of server ${Number(BigInt(id) >> 56n)}`)
    .replaceAll(/^Zookeeper version: .*$/gm, 'Zookeeper version')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'address')
    .replaceAll(/address:\d+/g, 'address')
    .replaceAll(/^((?:client|election|quorum)Port)=\d+$/gm, '$1')
    .replaceAll(/^(data(?:Log)?Dir)=.*$/gm, '$1')
    .replaceAll(/^(data(?:Log)?(?:Dir)?Size)=\d+$/gm, '$1')
    .replaceAll(/^((?:data|log)dir_size): \d+$/gm, '$1')
    // The expiry ticks of sessions depend on the times of their last pings.
    .replaceAll(/^\d+ expire at .*:$/gm, '')
    .replaceAll(/^((?:Session|Connections) Sets) \(\d+\)/gm, '$1')
    .replaceAll(/(est|lresp|llat|minlat|avglat|maxlat)=\d+/g, '$1')
    .replaceAll(/^(Latency min\/avg\/max): .*$/gm, '$1')
    // Depends on the number of start-up probes.
    .replaceAll(/^(Received|Sent): \d+$/gm, '$1')
    .split('\n');
  return lines.filter((line) => line !== '').toSorted();
}

/** An answer of the admin port without values that differ between runs. */
function normalizeAdmin(text: string): string {
  const withoutNumbers = text
    .replaceAll(/"version" : ".*"/g, '"version"')
    .replaceAll(/"zk?[^"]*_address[^"]*" : "[^"]*"/g, 'address')
    .replaceAll(/\b(?:127\.0\.0\.1|0\.0\.0\.0):\d+/g, 'address')
    .replaceAll(/("(?:data_dir|data_log_dir)") : "[^"]*"/g, '$1')
    // Session ids contain the id of their server.
    .replaceAll(/\b\d{16,19}\b/g, (id) => `session of server ${Number(BigInt(id) >> 56n)}`)
    .replaceAll(/^\s*"\d+" : \[.*\],?\n/gm, '')
    .replaceAll(/("all_ports") : \[ \d+ \]/g, '$1')
    .replaceAll(VARIABLE_FIELDS, '$1');
  // These and the fields of server_stats have the order of a Java hash table; an address has that of Java's methods.
  if (text.includes('"command" : "dump"')) {
    return withoutNumbers.replaceAll(',', '').replaceAll('{ }', '{\n  }').split('\n').toSorted().join('\n');
  }
  return withoutNumbers.replaceAll(
    /("(?:server_stats|quorum_address|election_address)" : \{\n)([\s\S]*?)(\n {2}\})/g,
    (_all, head: string, body: string, tail: string) => {
      const lines = body.replaceAll(/\{\n[\s\S]*?\}/g, '{ }').split('\n');
      return (
        head +
        lines
          .map((line) => line.replace(/,$/, ''))
          .toSorted()
          .join('\n') +
        tail
      );
    },
  );
}

const VARIABLE_FIELDS = new RegExp(
  `("(?:${[
    'client_port|established|last_response_time|last_latency|min_latency|avg_latency|max_latency|data_dir_size|log_dir_size',
    'uptime|packets_sent|packets_received',
  ].join('|')})") : [-\\d.E]+`,
  'g',
);

/** Values by keys, without `zk_`. */
function metrics(text: string): Map<string, string> {
  return new Map([...text.matchAll(/^zk_(\S+)\t(.*)$/gm)].map((match) => [match[1] ?? '', match[2] ?? '']));
}
