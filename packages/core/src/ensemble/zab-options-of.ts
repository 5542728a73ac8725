import { LEASE_MS_MAX, txnBytesMaxOf } from '@meerkat/protocol';
import type { CoreOptions, EnsembleOptions } from '../base/options.ts';
import type { ZabOptions } from '../zab/zab-options.ts';

export function zabOptionsOf(options: CoreOptions, ensemble: EnsembleOptions): ZabOptions {
  const { serverId, tickTimeMs } = options;
  const { initLimit, syncLimit, leaseTicks, epochTxnsMax, commitLogCount } = ensemble;
  const leaseMs = Math.min(leaseTicks * tickTimeMs, LEASE_MS_MAX);
  const txnBytesMax = txnBytesMaxOf(options.frameBytesMax, options.extraBytesMax);
  return { serverId, tickTimeMs, initLimit, syncLimit, leaseMs, epochTxnsMax, commitLogCount, txnBytesMax };
}
