/** Where a proxy leads to. */
export interface TargetAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Reads a port of 127.0.0.1, or `host:port`; brackets stand around an IPv6 address.
 *
 * @throws Error when it is neither
 */
export function parseTarget(target: number | string): TargetAddress {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(String(target)) ?? [];
  const host = typeof target === 'number' ? '127.0.0.1' : (bracketed ?? plain);
  const port = typeof target === 'number' ? target : Number(digits);
  if (host === undefined || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new Error(`the target of a proxy is a port or host:port, and this is ${JSON.stringify(target)}`);
  }
  return { host, port };
}

export function formatTarget({ host, port }: TargetAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
