import { beforeAll, expect, test } from 'vitest';
import { describeWith } from './harness/peers.ts';
import { SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';
import { SHELL_SCRIPT } from './zkcli/script.ts';
import { type Answer, shellTranscript } from './zkcli/transcript.ts';

describeWith(['apache', 'zkCli'], 'the shell zkCli.sh', () => {
  const transcripts = new Map<ServerKind, readonly Answer[]>();

  beforeAll(async () => {
    for (const kind of SERVER_KINDS) {
      await using server = await ServerProcess.start(kind);
      transcripts.set(kind, await shellTranscript(server.port, SHELL_SCRIPT));
    }
  });

  /** Output of the first command with this text. */
  function answer(kind: ServerKind, command: string): readonly string[] {
    return transcripts.get(kind)?.find((each) => each.command === command)?.lines ?? [];
  }

  test.each(SERVER_KINDS)('prints the requested data (%s)', (kind) => {
    expect(answer(kind, 'ls /')).toEqual(['[zookeeper]']);
    expect(answer(kind, 'create /app hello')).toEqual(['Created /app']);
    expect(answer(kind, 'create /app again')).toEqual(['Node already exists: /app']);
    expect(answer(kind, 'create -s /app/seq- first')).toEqual(['Created /app/seq-0000000001']);
    expect(answer(kind, 'get /app')).toEqual(['hello']);
    expect(answer(kind, 'ls -R /app')).toEqual([
      ...['/app', '/app/container', '/app/eph', '/app/none', '/app/seq-0000000001', '/app/seq-0000000002', '/app/ttl'],
    ]);
    expect(answer(kind, 'set /guarded x')).toEqual(['Insufficient permission : /guarded']);
    expect(answer(kind, 'getEphemerals')).toEqual(['/app/eph', '/app/seq-0000000002']);
  });

  test.each(SHELL_SCRIPT.map(({ line }, i) => [i, line] as const))(
    'answers command %i, %s, against Meerkat as against Apache',
    (i) => {
      const [theirs, ours] = [transcripts.get('apache')?.[i], transcripts.get('meerkat')?.[i]];
      expect(ours).toEqual(theirs);
    },
  );
});
