import { isIPv6 } from 'node:net';
import { parseChroot } from './chroot.ts';
import { BadArgumentsError } from './errors.ts';
import type { HostPort } from './machine/ports.ts';

/*
 * The syntax of a connect string, as in the ZooKeeper manual ("ZooKeeper Sessions"):
 *
 *     string  = server *("," server) [chroot]
 *     server  = host [":" port] / "[" IPv6 address "]" [":" port]
 *     chroot  = "/" path, once, after the last server
 *
 * Blanks around servers and empty servers are ignored, as in Apache's ConnectStringParser.
 */

/** The port of a server without one. */
export const DEFAULT_PORT = 2181;

/** Servers and chroot. */
export interface ParsedTarget {
  /** At least one, in the given order. */
  readonly hosts: readonly HostPort[];
  /** '' for none. */
  readonly chroot: string;
}

/**
 * Parses a connect string, or a list of servers.
 *
 * @param chroot is appended to the one of the connect string, if there are two
 * @throws BadArgumentsError that says which part is wrong and how to write it
 * @example
 * parseConnectString('zk1:2181,zk2,[::1]:2182/app'); // three servers, chroot '/app'
 */
export function parseConnectString(
  servers: string | readonly (string | HostPort)[],
  chroot?: string | undefined,
): ParsedTarget {
  const inner = chroot === undefined ? '' : parseChroot(chroot);
  if (typeof servers === 'string') {
    const { list, written } = split(servers.trim());
    return { hosts: parseServers(list.split(','), servers), chroot: parseChroot(written) + inner };
  }
  // Callers without a compiler may pass undefined, too.
  if (!Array.isArray(servers)) throw bad(`the servers are ${typeof servers}, not a connect string or a list`);
  return { hosts: parseServers(servers, servers.join(',')), chroot: inner };
}

/**
 * Parses one server: `host`, `host:port`, `[v6]` or `[v6]:port`.
 *
 * @throws BadArgumentsError that says what is wrong
 */
export function parseServer(text: string): HostPort {
  const bracketed = /^\[([^[\]]*)\](?::(.*))?$/.exec(text);
  if (bracketed !== null) {
    const address = bracketed[1] ?? '';
    if (!isIPv6(address)) throw bad(`"${text}": "${address}" is no IPv6 address, and only these stand in brackets`);
    return { host: address, port: parsePort(bracketed[2], text) };
  }
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon);
  if (!host.includes(':')) {
    return colon < 0
      ? checkServer({ host: text, port: DEFAULT_PORT })
      : checkServer({ host, port: parsePort(text.slice(colon + 1), text) });
  }
  // Is the number after the last colon of "fe80::1:2181" a port? It is unambiguous only where it cannot be one.
  if (isIPv6(text) && !isIPv6(host)) return { host: text, port: DEFAULT_PORT };
  const shown = isIPv6(host) ? `[${host}]${text.slice(colon)}` : '[::1]:2181';
  throw bad(`"${text}" has several colons; an IPv6 address stands in brackets: ${shown}`);
}

function split(text: string): { list: string; written: string } {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1];
  if (scheme !== undefined) {
    throw bad(`"${text}" begins with "${scheme}://"; a connect string is not a URL: write host:port,host:port/chroot`);
  }
  const slash = text.indexOf('/');
  if (slash < 0) return { list: text, written: '' };
  const written = text.slice(slash);
  const misplaced = /,\s*([^/,]+:\d+)/.exec(written)?.[1];
  // A path may contain a comma and a colon, but here a server is probably meant. The option chroot accepts any path.
  if (misplaced !== undefined) {
    throw bad(`"${text}": "${misplaced}" stands behind the chroot, which is written once, behind the last server`);
  }
  return { list: text.slice(0, slash), written };
}

function parseServers(parts: readonly (string | HostPort)[], whole: string): HostPort[] {
  const hosts: HostPort[] = [];
  for (const part of parts) {
    if (typeof part !== 'string') hosts.push(checkServer(part));
    else if (part.trim() !== '') hosts.push(parseServer(part.trim()));
  }
  if (hosts.length === 0) throw bad(`"${whole}" names no server; write host:port, for instance 127.0.0.1:2181`);
  return hosts;
}

function parsePort(text: string | undefined, whole: string): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (!isPort(port)) throw bad(`"${whole}": the port is "${text}", not a number from 1 to 65535`);
  return port;
}

function checkServer({ host, port }: HostPort): HostPort {
  if (typeof host !== 'string' || !isHostName(host)) throw bad(`"${host}" is no name or address of a server`);
  if (!isPort(port)) throw bad(`the port of "${host}" is ${port}, not a number from 1 to 65535`);
  return { host, port };
}

/** Names are left to the resolver, except for those that no resolver can know. */
function isHostName(text: string): boolean {
  return isIPv6(text) || (text.length <= HOST_CHARACTERS_MAX && /^[^\s/,:;@?#[\]()"']+$/.test(text));
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

/** Limit of DNS names. */
const HOST_CHARACTERS_MAX = 255;

function bad(detail: string): BadArgumentsError {
  return new BadArgumentsError({ operation: 'connect', path: null, detail });
}
