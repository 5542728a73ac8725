import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeCertificates } from './harness/admin-certificates.ts';
import { throughOpenssl } from './harness/openssl-request.ts';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { OPEN_ACL, record } from './harness/record-builder.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

/** Commands, and an unknown one. Those of ensembles are compared in `ensemble/four-letter-words.long.test.ts`. */
const COMMANDS =
  `configuration conf connections cons dirs dump environment get_trace_mask gtmk hash initial_configuration is_read_only
  last_snapshot lead leader monitor observers orst ruok server_stats set_trace_mask set_trace_mask?traceMask=7 set_trace_mask?traceMask=x
  srvr stat stats crst srst voting_view wchc wchp wchs watches watches_by_path watch_summary zabstate nope`.split(
    /\s+/,
  );

/** The text without values that differ between runs. */
function normalize(text: string): string {
  return text
    .replaceAll(/("(?:version|zookeeper\.version|initial_configuration)" : )".*"/g, '$1')
    .replaceAll(/("(?:data_dir|data_log_dir|zxid)" : )"[^"]*"/g, '$1')
    .replaceAll(/(: )(-?[\d.]+(?:E-?\d+)?)/g, (_all, colon: string, value: string) => {
      return `${colon}${value.includes('.') ? 'double' : 'integer'}`;
    });
}

/** Names and types of all fields. The order inside `server_stats` and metrics is that of a Java hash table. */
function shapeOf(text: string, isOrdered: boolean): unknown {
  const fields = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
    if (Array.isArray(value)) return value.map(fields);
    const entries = Object.entries(value).map(([key, field]) => {
      return [key, key === 'server_stats' ? Object.fromEntries(Object.entries(field as object).toSorted()) : field];
    });
    return (isOrdered ? entries : entries.toSorted()).map(([key, field]) => [key, fields(field)]);
  };
  return fields(JSON.parse(text));
}

/** Certificates for the admin ports. */
const certificates = mkdtempSync(join(tmpdir(), 'interop-admin-tls-'));
const { ca: CA, keys: KEYS } = writeCertificates(certificates);
afterAll(() => rmSync(certificates, { recursive: true }));

/** The keys of Apache's server for TLS at its admin port. */
const UNIFIED = {
  'admin.portUnification': true,
  'ssl.quorum.keyStore.location': KEYS,
  'ssl.quorum.keyStore.type': 'PEM',
  'ssl.quorum.trustStore.location': CA,
  'ssl.quorum.trustStore.type': 'PEM',
};

describeWith(['apache', 'openssl'], 'the admin port of a server on its own', () => {
  const answers = new Map<ServerKind, Map<string, string>>();
  const methods = new Map<ServerKind, Map<string, number>>();
  const secured = new Map<ServerKind, string>();

  beforeAll(async () => {
    await Promise.all(
      SERVER_KINDS.map(async (kind) => {
        await using server = await ServerProcess.start(kind, { hasAdmin: true, config: UNIFIED });
        const client = await RawClient.connect(server.port, { timeoutMs: 40_000, isSilent: true });
        await client.demand(Op.create, record().ustring('/e').buffer('x').acls(OPEN_ACL).int(1).build());
        await client.demand(Op.getData, record().ustring('/e').bool(true).build());
        const quotas = [
          ['/app', 'count=7,bytes=1000', 'count=1,bytes=0'],
          ['/app/part', 'count=5,bytes=-1=;byteHardLimit=300;countHardLimit=-1', 'count=2,bytes=3'],
          ['/other', 'count=-1,bytes=9', 'count=1,bytes=1'],
        ] as const;
        for (const [path, limits, use] of quotas) {
          const text = (name: string, data: string): Promise<unknown> =>
            client.demand(Op.create, record().ustring(name).buffer(data).acls(OPEN_ACL).int(0).build());
          await text(path, 'x');
          await text(`/zookeeper/quota${path}`, '');
          await text(`/zookeeper/quota${path}/zookeeper_limits`, limits);
          await text(`/zookeeper/quota${path}/zookeeper_stats`, use);
        }
        const texts = new Map<string, string>();
        for (const name of COMMANDS) texts.set(name, await server.askAdmin(`/commands/${name}`));
        answers.set(kind, texts);
        const codes = new Map<string, number>();
        for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'POST']) {
          const { status } = await fetch(`http://127.0.0.1:${server.adminPort}/commands/ruok`, { method });
          codes.set(method, status);
        }
        methods.set(kind, codes);
        secured.set(kind, await throughOpenssl({ port: server.adminPort, ca: CA }, ['GET /commands/ruok HTTP/1.1']));
        await client.close();
      }),
    );
  });
  afterAll(() => answers.clear());

  test.each(COMMANDS)("answers %s with the fields of Apache's, in their order and of their types", (name) => {
    const ours = answers.get('meerkat')?.get(name) ?? '';
    const theirs = answers.get('apache')?.get(name) ?? '';
    if (name === 'monitor') {
      const names = (text: string): string[] => Object.keys(JSON.parse(text) as object);
      const missing = names(theirs).filter(
        (key) => !names(ours).includes(key) && !/(read|write)_per_namespace$/.test(key),
      );
      expect(missing).toEqual([]);
      const limits = (text: string): object =>
        Object.fromEntries(
          Object.entries(JSON.parse(text) as object)
            .filter(([key]) => /_quota_\w+_limit_per_namespace$/.test(key))
            .toSorted(),
        );
      expect(limits(ours)).toEqual(limits(theirs));
      expect(limits(ours)).toMatchObject({ app_quota_count_limit_per_namespace: 12 });
      expect(names(ours).filter((key) => /_quota_\w+_usage_per_namespace$/.test(key))).toHaveLength(4);
      expect(ours).toMatch(/"avg_latency" : \d+\.\d/);
      expect(ours).not.toMatch(/"znode_count" : \d+\./);
      return;
    }
    const isOrdered = !/server_stats|srvr|stats?$/.test(name);
    if (name === 'dump') {
      expect(ours.replaceAll(/"\d+"/g, 'number')).toMatch(
        /^\{\n {2}"expiry_time_to_session_ids" : \{\n {4}number : \[ \d{17,} \]\n {2}\},/,
      );
      expect(Object.keys(JSON.parse(ours) as object)).toEqual(Object.keys(JSON.parse(theirs) as object));
      return;
    }
    if (/watches|wch[cp]/.test(name)) {
      expect(ours.replaceAll(/\d{17,}/g, 'id')).toBe(theirs.replaceAll(/\d{17,}/g, 'id'));
      return;
    }
    expect(shapeOf(ours, isOrdered)).toEqual(shapeOf(theirs, isOrdered));
    const withoutEnvironment = (text: string): string => (name === 'environment' ? '' : normalize(text));
    const sorted = (text: string): string =>
      isOrdered
        ? text
        : text
            .split('\n')
            .map((line) => line.replace(/,$/, ''))
            .toSorted()
            .join('\n');
    expect(sorted(withoutEnvironment(ours)).replaceAll(/"remote_socket_address" : ".*"/g, '')).toBe(
      sorted(withoutEnvironment(theirs)).replaceAll(/"remote_socket_address" : ".*"/g, ''),
    );
  });

  test("answers with TLS on the same port like Apache's, and counts connections without TLS", () => {
    const ours = secured.get('meerkat') ?? '';
    const theirs = secured.get('apache') ?? '';
    const parts = (text: string): unknown => [
      /^HTTP\/1\.1 \d+/.exec(text)?.[0],
      /^strict-transport-security: .*$/im.exec(text)?.[0].toLowerCase(),
      text.slice(text.indexOf('\r\n\r\n')),
    ];
    expect(parts(ours)).toEqual(parts(theirs));
    expect(theirs).toContain('max-age');
    for (const kind of SERVER_KINDS) {
      expect(answers.get(kind)?.get('monitor'), kind).toMatch(/"insecure_admin_count" : [1-9]\d*,/);
    }
  });

  test("answers other methods with Apache's codes", () => {
    expect(Object.fromEntries(methods.get('meerkat') ?? [])).toEqual(Object.fromEntries(methods.get('apache') ?? []));
  });
});
