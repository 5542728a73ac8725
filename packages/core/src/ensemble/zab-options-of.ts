import { txnBytesMaxOf } from '@meerkat/protocol';
import type { CoreOptions, EnsembleOptions } from '../base/options.ts';
import type { ZabOptions } from '../zab/zab-options.ts';

export function zabOptionsOf(options: CoreOptions, ensemble: EnsembleOptions): ZabOptions {
  const { serverId, tickTimeMs } = options;
  const { initLimit, syncLimit, epochTxnsMax, commitLogCount } = ensemble;
  const txnBytesMax = txnBytesMaxOf(options.frameBytesMax, options.extraBytesMax);
  return { serverId, tickTimeMs, initLimit, syncLimit, epochTxnsMax, commitLogCount, txnBytesMax };
}
