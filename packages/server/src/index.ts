export { type AuthOptions, DEFAULT_AUTH_OPTIONS, makeAuthenticator } from './auth/authenticator.ts';
export type { AuthProvider } from './auth/own-provider.ts';
export type { Scheme } from './auth/scheme.ts';
export type { X509Options } from './auth/x509.ts';
export { JVM_FLAG_VARIABLES, readJvmFlags } from './config/jvm-flags.ts';
export { type Configuration, DEFAULT_SERVER_OPTIONS, makeConfiguration, type ServerOptions } from './config/options.ts';
export {
  ConfigurationError,
  type ConfigurationFault,
  type ReadConfiguration,
  readZooCfg,
  type ZooCfg,
} from './config/zoo-cfg.ts';
export { ExitCode, ServerError } from './exit-codes.ts';
export type { AdminOptions, MetricsPortOptions } from './http/options.ts';
export { type Logger, type LoggerOptions, type LogLevel, makeLogger, SILENT_LOGGER, TextLogger } from './logger.ts';
export { runServer } from './main.ts';
export { type CutHost, CuttableNetwork } from './node/cuttable-network.ts';
export type { HostedDisk } from './node/hosted-disk.ts';
export type { RunningServer, StartOptions } from './running-server.ts';
export { startServer } from './server.ts';
export { isSingleFile } from './single-file.ts';
export {
  CertificateAuthority,
  type CertificateOptions,
  type IssuedCertificate,
  type KeyType,
} from './tls/certificate-authority.ts';
export {
  type ClientAuth,
  DEFAULT_QUORUM_TLS_OPTIONS,
  DEFAULT_TLS_OPTIONS,
  NO_STORE,
  type StoreLocation,
  type TlsOptions,
  TlsProtocol,
} from './tls/options.ts';
export { FULL_VERSION, MEERKAT_VERSION, ZOOKEEPER_VERSION } from './version.ts';
