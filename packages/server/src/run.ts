/** What the commands `meerkat server`, `up`, `doctor` and `migrate` need, and nothing else: `../run.js` has it in one file. */
export { readJvmFlags } from './config/jvm-flags.ts';
export { ConfigurationError, type ReadConfiguration, readZooCfg } from './config/zoo-cfg.ts';
export { ExitCode } from './exit-codes.ts';
export { runServer } from './main.ts';
export { CuttableNetwork } from './node/cuttable-network.ts';
export type { RunningServer } from './running-server.ts';
export { isSingleFile } from './single-file.ts';
export { MEERKAT_VERSION, ZOOKEEPER_VERSION } from './version.ts';
