// Preloaded into a server to disable its metrics: the baseline of `npm run bench -- metrics`.
import { Histogram, Meters, NamespaceMeters } from '../packages/core/dist/index.js';
import { Metrics } from '../packages/server/dist/metrics/metrics.js';

const nothing = () => {};
const counting = [
  [Meters, ['onReadAtOnce', 'onAnswered', 'onApplied', 'onProposalReceived', 'onTurnEnd']],
  [NamespaceMeters, ['onRead', 'onTxn']],
  [Histogram, ['add']],
  [Metrics, ['emit', 'onBytesReceived']],
];
for (const [type, methods] of counting) {
  for (const method of methods) {
    if (typeof type.prototype[method] !== 'function') throw new Error(`${type.name} no longer has ${method}`);
    type.prototype[method] = nothing;
  }
}
