import { describe, expect, test } from 'vitest';
import type {
  ByteStream,
  Endpoint,
  PeerAuthentication,
  SaslConversation,
  SaslInitiator,
  SaslStep,
  StreamEvents,
  TraceEvent,
} from '../base/ports.ts';
import { MemoryNetwork } from '../testing/memory-network.ts';
import { authenticated, type PeerPort } from './peer-authentication.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (token: Uint8Array): string => new TextDecoder('latin1').decode(token);
const AT: Endpoint = { host: 'b', port: 1 };
/** Magic, status, length of the token; the token. */
const packet = (status: number, token: string): Uint8Array =>
  Uint8Array.of(0x5f, 0x24, 0x35, 1, 0x35, 1, 0xed, 0xcc, ...int(status), ...int(token.length), ...bytes(token));
const int = (value: number): number[] => [value >> 24, value >> 16, value >> 8, value].map((byte) => byte & 0xff);
/** A hello of the election port: version, server id, address. */
const HELLO = Uint8Array.of(...int(-1), ...int(-65536), ...int(0), ...int(7), ...int(5), ...bytes('a:123'));

/** Expects the password in plain text, and answers "ok". */
const CONVERSATION: SaslConversation = {
  step: (token): SaslStep =>
    textOf(token) === ''
      ? { kind: 'challenge', token: bytes('password?') }
      : textOf(token) === 'right'
        ? { kind: 'success', token: bytes('ok'), identities: [] }
        : { kind: 'failure', reason: 'wrong password' },
};

function initiator(password: string): SaslInitiator {
  return {
    start: () => new Uint8Array(0),
    step: (token): SaslStep => {
      if (textOf(token) === 'password?') return { kind: 'challenge', token: bytes(password) };
      if (textOf(token) === 'ok') return { kind: 'success', token: null, identities: [] };
      return { kind: 'failure', reason: 'it has not said ok' };
    },
  };
}

/** @param password null: it does not log in */
function sasl(password: string | null, isRequired = true): PeerAuthentication {
  return {
    isRequired,
    startInitiator: () => (password === null ? null : initiator(password)),
    startAcceptor: () => CONVERSATION,
  };
}

/** One end of a stream, and what its owner received. */
class End {
  received = '';
  closed: string | null = null;
  stream: ByteStream | null = null;

  open(stream: ByteStream): StreamEvents {
    this.stream = stream;
    return {
      onBytes: (chunk) => {
        this.received += textOf(chunk);
      },
      onDrain: () => {},
      onClosed: (reason) => {
        this.closed = reason;
      },
    };
  }
}

interface Meeting {
  readonly here: End;
  readonly there: End;
  readonly warnings: string[];
}

/** a dials b and sends all of `say` at once; null ends the stream. */
function meet(
  port: PeerPort,
  dialling: PeerAuthentication | null,
  dialled: PeerAuthentication | null,
  say: readonly (Uint8Array | null)[],
  seed = 1,
): Meeting {
  const network = new MemoryNetwork(seed, { chunkBytesMax: 7 });
  const [here, there] = [new End(), new End()];
  const warnings: string[] = [];
  const trace = {
    emit: (event: TraceEvent) => {
      if (event.kind === 'warning') warnings.push(event.message);
    },
  };
  authenticated(network.portOf('b'), dialled, port, trace).listen(AT, {
    onListening: () => {},
    onListenFailed: () => {},
    onAccepted: (stream) => there.open(stream),
  });
  network.settle();
  authenticated(network.portOf('a'), dialling, port, trace).connect(AT, {
    onConnectFailed: () => {},
    onConnected: (stream) => {
      const events = here.open(stream);
      network.later(() => {
        for (const each of say) {
          if (each === null) stream.end();
          else stream.write(each);
        }
      });
      return events;
    },
  });
  network.settle();
  return { here, there, warnings };
}

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

describe('an exchange between servers', () => {
  test.each(SEEDS)('comes before everything on the quorum port, in pieces of any size (%i)', (seed) => {
    const { here, there, warnings } = meet('quorum', sasl('right'), sasl('right'), [bytes('one'), bytes('two')], seed);
    expect(there.received).toBe('onetwo');
    there.stream?.write(bytes('back'));
    expect(here.closed).toBeNull();
    expect(warnings).toEqual([]);
  });

  test.each(SEEDS)('comes after the hello on the election port, which is delivered when it is over (%i)', (seed) => {
    const { there } = meet('election', sasl('right'), sasl('right'), [HELLO, bytes('vote')], seed);
    expect(there.received).toBe(`${textOf(HELLO)}vote`);
    const refused = meet('election', sasl('wrong'), sasl('right'), [HELLO, bytes('vote')], seed);
    expect(refused.there.received).toBe('');
    expect(refused.there.closed).toMatch(/wrong password/);
    expect(refused.here.closed).toMatch(/refuses the SASL login/);
  });

  test('is finished before a server that only sends a hello may close', () => {
    expect(meet('election', sasl('right'), sasl('right'), [HELLO, null]).there.received).toBe(textOf(HELLO));
  });

  test('is required of all servers, or of none', () => {
    const strict = meet('quorum', null, sasl('right'), [bytes('a learner')]);
    expect(strict.there.received).toBe('');
    expect(strict.warnings).toEqual([expect.stringMatching(/^a:\d+ on the quorum port: it does not authenticate/)]);
    expect(meet('quorum', null, sasl('right', false), [bytes('a learner')]).there.received).toBe('a learner');
    const voter = meet('election', null, sasl('right', false), [HELLO, bytes('vote for me')]);
    expect(voter.there.received).toBe(`${textOf(HELLO)}vote for me`);
    expect(meet('election', null, sasl('right', false), [HELLO, null]).there.received).toBe(textOf(HELLO));
    expect(meet('election', null, sasl('right', true), [HELLO, null]).there.received).toBe('');
  });

  test('that fails although it is not required leaves the stream open, as with Apache', () => {
    const { there, here, warnings } = meet('quorum', sasl('wrong'), sasl('right', false), [bytes('x')]);
    // Closed by the dialling side, which does not ignore the failure.
    expect(there.closed).toBe('closed by peer');
    expect(warnings[0]).toMatch(/failed to authenticate by SASL, which is not required: wrong password/);
    expect(here.closed).toMatch(/refuses the SASL login/);
  });

  test.each([
    ['reports success before it has proved itself', [packet(1, 'password?')], /before it has proved/],
    ['reports success without a proof', [packet(1, '')], /it has not said ok/],
    ['sends an unknown status', [packet(7, '')], /refuses the SASL login/],
    ['sends something else', [new Uint8Array(16)], /an invalid SASL packet/],
    [
      'announces a token without end',
      [packet(0, '').map((byte, i) => (i === 12 ? 0x7f : byte))],
      /an invalid SASL packet/,
    ],
  ] as const)('fails for the dialling side when the other end %s', (_, answer, reason) => {
    const network = new MemoryNetwork(1);
    const here = new End();
    network.portOf('b').listen(AT, {
      onListening: () => {},
      onListenFailed: () => {},
      onAccepted: (stream) => {
        network.later(() => {
          for (const each of answer) stream.write(each);
        }, 20);
        return new End().open(stream);
      },
    });
    network.settle();
    authenticated(network.portOf('a'), sasl('right'), 'quorum', { emit: () => {} }).connect(AT, {
      onConnectFailed: () => {},
      onConnected: (stream) => here.open(stream),
    });
    network.settle();
    expect(here.closed).toMatch(reason);
    expect(here.received).toBe('');
  });

  test('reports which mechanism the other end uses if it is not supported here', () => {
    const warning = 'it begins as with another mechanism';
    const startAcceptor = (): SaslConversation => ({ step: (token) => ({ kind: 'challenge', token, warning }) });
    const { warnings } = meet('quorum', null, { ...sasl('right'), startAcceptor }, [packet(0, '?')]);
    expect(warnings).toEqual([
      expect.stringMatching(/^a:\d+ on the quorum port: it begins as with another mechanism$/),
    ]);
  });

  test('may prove the host of the peer, in addition to a certificate', () => {
    const hosts = ['b', 'c'].map((id) => ({ scheme: 'host', id }));
    const conversation: SaslConversation = {
      step: (token): SaslStep => {
        const step = CONVERSATION.step(token);
        return step.kind === 'success' ? { ...step, identities: hosts } : step;
      },
    };
    const proving = { ...sasl('right'), startAcceptor: () => conversation };
    expect(meet('quorum', sasl('right'), proving, [bytes('x')]).there.stream?.certifiedHosts).toEqual(['b', 'c']);
    expect(meet('quorum', sasl('right'), sasl('right'), [bytes('x')]).there.stream?.certifiedHosts).toBeNull();
  });

  test('ends for the listening side after six tokens, and with garbage', () => {
    const raw = (...said: readonly Uint8Array[]): Meeting => meet('quorum', null, sasl('right'), said);
    const endless = raw(...Array.from({ length: 7 }, () => packet(0, '')));
    expect(endless.there.closed).toMatch(/takes too many tokens/);
    const garbage = raw(packet(0, ''), new Uint8Array(64));
    expect(garbage.there.closed).toMatch(/an invalid SASL packet/);
    expect([endless.there.received, garbage.there.received]).toEqual(['', '']);
  });
});
