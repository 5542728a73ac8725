import type { ConnectionOptions } from 'node:tls';
import { type ArchiveFiles, DirectoryFiles, RemoteFiles } from '@meerkat/server/archive';
import { InvocationFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import type { SourceWords } from './source-words.ts';

const ADMIN_PORT = 8080;

/** The servers that may be asked, each to be tried; one directory. @throws InvocationFailure, ArchiveError */
export async function openSources(context: Context, words: SourceWords): Promise<readonly ArchiveFiles[]> {
  const { dir, logDir, admin } = words;
  if (dir !== undefined && admin !== undefined) {
    throw new InvocationFailure('--dir and --admin say where the files are: give one of them');
  }
  if (dir !== undefined) return [await DirectoryFiles.open(dir, logDir ?? null)];
  if (logDir !== undefined) throw new InvocationFailure('--log-dir goes with --dir');
  const { signal } = context;
  const tls = await adminTls(context);
  const urls =
    admin === undefined
      ? (await context.servers()).map(
          ({ host }) => `http://${host.includes(':') ? `[${host}]` : host}:${ADMIN_PORT}/commands`,
        )
      : admin.split(',').map(adminUrl);
  const credentials = await credentialsOf(context);
  return urls.map((url) => {
    const authorization = credentials ?? withoutCredentials(url, tls);
    return new RemoteFiles({ url, authorization, tls, signal });
  });
}

/** The first that answers. */
export async function openSource(context: Context, words: SourceWords): Promise<ArchiveFiles> {
  const sources = await openSources(context, words);
  let failure: unknown = null;
  for (const source of sources) {
    try {
      await source.list();
      return source;
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/** The first credentials of this run, as admin ports take them: `digest ann:secret`; null: none were given. */
export async function credentialsOf(context: Context): Promise<string | null> {
  const [first] = (await context.settings()).options.auth ?? [];
  if (first === undefined) return null;
  const { scheme, auth } = first;
  return `${scheme} ${typeof auth === 'string' ? auth : Buffer.from(auth ?? []).toString()}`;
}

/** What is shown and trusted at admin ports with TLS: what the options of the command say. */
export async function adminTls(context: Context): Promise<ConnectionOptions> {
  const { tls = null } = (await context.settings()).options;
  return typeof tls === 'object' && tls !== null ? tls : {};
}

/** Without credentials: the certificate if there is one, else the address. Sufficient while the root is open to all. */
export function withoutCredentials(url: string, { cert }: ConnectionOptions): string {
  return url.startsWith('https:') && cert !== undefined ? 'x509' : 'ip';
}

function adminUrl(text: string): string {
  const withScheme = /^https?:\/\//.test(text) ? text : `http://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null;
  if (url === null)
    throw new InvocationFailure(`--admin: expected http://host:8080/commands or host:port, found "${text}"`);
  return `${url.origin}${url.pathname === '/' ? '/commands' : url.pathname.replace(/\/$/, '')}`;
}
