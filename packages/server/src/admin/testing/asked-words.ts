import type { FourLetterWords, ServerView } from '@meerkat/core';
import { makeConfiguration } from '../../config/options.ts';
import { Metrics } from '../../metrics/metrics.ts';
import { MonitorBaseline } from '../../metrics/monitor-baseline.ts';
import { makeFourLetterWords } from '../four-letter-words.ts';
import { TraceMask } from '../trace-mask.ts';

export const CLOCK = { monotonicMs: () => 0, wallMs: () => 0 };

/** Its answers in one piece. */
export type Words = Omit<FourLetterWords, 'answer'> & { answer(word: string, argument: bigint | null): string };

export function words(serverView: ServerView, allowed: readonly string[] = ['*']): Words {
  const configuration = makeConfiguration('/data', {
    core: { tickTimeMs: 2000, sessionTimeoutMinMs: 4000, sessionTimeoutMaxMs: 40_000 },
    server: { fourLetterWordsAllowed: allowed },
  });
  const parts = {
    configuration,
    metrics: new Metrics(CLOCK, 1000),
    baseline: new MonitorBaseline(),
    traceMask: new TraceMask(),
  };
  return inOnePiece(makeFourLetterWords({ ...parts, clientPort: () => 39567, ...NO_TLS })(serverView));
}

export const NO_TLS = {
  secureClientPort: () => -1,
  tls: () => ({
    handshakes: 0,
    clientCertificateDays: null,
    quorumCertificateDays: null,
    adminCertificateDays: null,
    plainAdminConnections: 0,
    httpHandshakesFailed: 0,
    httpConnectionsExceeded: 0,
  }),
};

export function inOnePiece(made: FourLetterWords): Words {
  return {
    isWord: (word) => made.isWord(word),
    hasArgument: (word) => made.hasArgument(word),
    answer: (word, argument) => [...made.answer(word, argument)].join(''),
  };
}
