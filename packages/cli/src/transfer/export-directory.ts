import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { joinPath, OPEN } from '@meerkat/client';
import * as v from 'valibot';
import type { TreeEntry } from '../copy/tree-entry.ts';
import { hex, isoTime } from '../output/stat-columns.ts';
import { CommandFailure, fileFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { makeDirectory } from '../run/make-directory.ts';
import { EXPORT_VERSION, type ExportHeader, type ExportOrigin } from './export-line.ts';
import { fileNameOf, znodeNameOf } from './file-name.ts';
import { ACL, aclOf, aclRecord, describeIssue, describePathFault, KIND, TTL_MS } from './znode-fields.ts';

/*
 * A tree as directories, a znode each:
 *
 *     dir/_meerkat.json     {"meerkatExport": 1, "root": "/app", …, "znodes": 3}; the count comes last of all
 *     dir/_znode            the data of the root, byte by byte; not there when it holds nothing (null)
 *     dir/_znode.json       {"acl": […], "kind": …, "ttlMs": …}; only what is not as usual: open, persistent
 *     dir/config/_znode     the data of /app/config
 *
 * A directory made by hand has no _meerkat.json and is as good, and a file by another name is a znode too,
 * one without children; of such znodes the ACL is unknown. What a file of an export has and a directory has not: Stats.
 */
const HEADER_FILE = '_meerkat.json';
const DATA_FILE = '_znode';
const FIELDS_FILE = '_znode.json';

/** Writes a tree, parents before their children. */
export class DirectoryWriter {
  readonly #directory: string;
  readonly #header: object;
  #znodes = 0;

  /** @throws CommandFailure when the directory has something in it */
  constructor(directory: string, root: string, origin: ExportOrigin | null, withAcl: boolean) {
    this.#directory = directory;
    const sourceFields =
      origin === null ? {} : { source: origin.source, zxid: hex(origin.zxid), time: isoTime(origin.timeMs) };
    this.#header = { meerkatExport: EXPORT_VERSION, root, ...(withAcl ? {} : { acl: false }), ...sourceFields };
    attempt(`cannot write to the directory ${directory}`, () => {
      makeDirectory(directory);
      if (readdirSync(directory).length > 0) {
        const message = `the directory ${directory} has something in it: an export goes to a new or an empty one`;
        throw new CommandFailure(CommandExit.file, message);
      }
    });
    this.#writeHeader(this.#header);
  }

  add({ path, data, acl, kind, ttlMs }: TreeEntry): void {
    const directory =
      path === '/' ? this.#directory : join(this.#directory, ...path.slice(1).split('/').map(fileNameOf));
    const fields = {
      ...(acl === null || isOpen(acl.map(aclRecord)) ? {} : { acl: acl.map(aclRecord) }),
      ...(kind === 'persistent' ? {} : { kind }),
      ...(ttlMs === null ? {} : { ttlMs }),
    };
    attempt(`cannot write ${path} to ${directory}`, () => {
      if (path !== '/') mkdirSync(directory);
      if (data !== null) writeFileSync(join(directory, DATA_FILE), data);
      if (Object.keys(fields).length > 0) {
        writeFileSync(join(directory, FIELDS_FILE), `${JSON.stringify(fields, null, 2)}\n`);
      }
    });
    this.#znodes++;
  }

  /** @param zxid null with --no-stat */
  end(zxid: bigint | null): void {
    this.#writeHeader({ ...this.#header, znodes: this.#znodes, ...(zxid === null ? {} : { endZxid: hex(zxid) }) });
  }

  #writeHeader(header: object): void {
    const path = join(this.#directory, HEADER_FILE);
    attempt(`cannot write ${path}`, () => writeFileSync(path, `${JSON.stringify(header, null, 2)}\n`));
  }
}

function isOpen(acl: readonly ReturnType<typeof aclRecord>[]): boolean {
  const [only] = acl;
  return acl.length === 1 && only?.scheme === 'world' && only.id === 'anyone' && only.perms === 'cdrwa';
}

const HEADER = v.looseObject({
  meerkatExport: v.literal(EXPORT_VERSION),
  root: v.string(),
  source: v.optional(v.string()),
  /** False: written with --no-acl. */
  acl: v.optional(v.boolean(), true),
  znodes: v.optional(v.number()),
});
const FIELDS = v.strictObject({
  acl: v.optional(ACL),
  kind: v.optional(KIND, 'persistent'),
  ttlMs: v.optional(TTL_MS),
});

export interface DirectoryHeader extends ExportHeader {
  readonly znodes: number;
  /** Whether a znode without fields is open; otherwise its ACL is unknown. */
  readonly hasAcls: boolean;
}

/** @returns null for a directory made by hand. @throws CommandFailure when its export was never finished */
export function readDirectoryHeader(directory: string): DirectoryHeader | null {
  const path = join(directory, HEADER_FILE);
  const value = readJson(path);
  if (value === undefined) return null;
  const parsed = v.safeParse(HEADER, value);
  if (!parsed.success) throw badFile(path, describeIssue(parsed.issues[0]));
  const { root, source = null, znodes, acl: hasAcls } = parsed.output;
  const fault = describePathFault(root);
  if (fault !== null) throw badFile(path, `root: ${fault}`);
  if (znodes === undefined) throw badFile(path, 'it counts no znodes: the export was cut off');
  return { root, source, znodes, hasAcls };
}

/** The znodes of a directory, in tree order. @throws CommandFailure that names the file that is wrong, or is missing */
export async function* readDirectory(directory: string): AsyncGenerator<TreeEntry, void> {
  const header = readDirectoryHeader(directory);
  let znodes = 0;
  const usual = header?.hasAcls === true ? OPEN : null;
  for (const entry of entriesBelow(directory, '/', usual)) {
    znodes++;
    yield entry;
  }
  if (header !== null && header.znodes !== znodes) {
    const message = `it counts ${header.znodes} znodes, and the directory has ${znodes}; without ${HEADER_FILE} they are not counted`;
    throw badFile(join(directory, HEADER_FILE), message);
  }
}

/** @param usual the ACL of a znode whose fields name none */
function* entriesBelow(directory: string, path: string, usual: UsualAcl): Generator<TreeEntry, void> {
  const files = attempt(`cannot read the directory ${directory}`, () =>
    readdirSync(directory, { withFileTypes: true }),
  );
  yield readEntry(directory, path, usual);
  const children = files
    .filter(({ name }) => ![HEADER_FILE, DATA_FILE, FIELDS_FILE].includes(name))
    .map((file) => ({ file, name: znodeNameOf(file.name) ?? '' }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const { file, name } of children) {
    const place = join(directory, file.name);
    const child = joinPath(path, name);
    const fault = name === '' || name.includes('/') ? 'it is no name of a znode' : describePathFault(child);
    if (fault !== null) throw badFile(place, fault);
    if (file.name.startsWith('_')) throw badFile(place, 'names that begin with "_" mean something; %5F stands for it');
    if (file.isDirectory()) yield* entriesBelow(place, child, usual);
    else if (file.isFile()) yield makeEntry(child, readBytes(place) ?? null, {}, usual);
    else throw badFile(place, 'expected a file or a directory');
  }
}

function readEntry(directory: string, path: string, usual: UsualAcl): TreeEntry {
  const data = readBytes(join(directory, DATA_FILE)) ?? null;
  const fieldsPath = join(directory, FIELDS_FILE);
  const parsed = v.safeParse(FIELDS, readJson(fieldsPath) ?? {});
  if (!parsed.success) throw badFile(fieldsPath, describeIssue(parsed.issues[0]));
  const { kind, ttlMs } = parsed.output;
  if ((kind === 'ttl') !== (ttlMs !== undefined)) {
    throw badFile(fieldsPath, 'ttlMs goes with the kind "ttl", and with no other');
  }
  return makeEntry(path, data, parsed.output, usual);
}

type UsualAcl = TreeEntry['acl'];

function makeEntry(
  path: string,
  data: Uint8Array | null,
  { acl, kind = 'persistent', ttlMs }: Partial<v.InferOutput<typeof FIELDS>>,
  usual: UsualAcl,
): TreeEntry {
  return { path, data, acl: acl?.map(aclOf) ?? usual, kind, ttlMs: ttlMs ?? null, mtime: null, stat: null };
}

/** @returns undefined when there is no such file */
function readJson(path: string): unknown {
  const bytes = readBytes(path);
  if (bytes === undefined) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    throw badFile(path, `it is no JSON: ${(error as Error).message}`);
  }
}

function readBytes(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw fileFailure(`cannot read ${path}`, error);
  }
}

function badFile(path: string, fault: string): CommandFailure {
  return new CommandFailure(CommandExit.undecodable, `${path}: ${fault}`);
}

function attempt<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENAMETOOLONG') {
      const message = `${what}: the name is longer than the file system takes; an export without --dir has no such bounds`;
      throw new CommandFailure(CommandExit.file, message, error);
    }
    throw fileFailure(what, error);
  }
}
