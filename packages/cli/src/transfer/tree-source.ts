import { statSync } from 'node:fs';
import type { TreeEntries } from '../copy/tree-pairs.ts';
import { selectFrom, selectFromService, type TreeSelection } from '../copy/tree-selection.ts';
import { fileFailure } from '../run/command-failure.ts';
import type { Context } from '../run/context.ts';
import { readDirectory, readDirectoryHeader } from './export-directory.ts';
import { type ExportFile, readExport, readExportHeader } from './export-reader.ts';

/** A tree that can be read again and again: of a service, of an exported file or of a directory. */
export interface TreeSource {
  /** As it is named to people. */
  readonly shown: string;
  /** Where the tree was when it was exported; null when unknown. */
  readonly root: string | null;
  readonly isDirectory: boolean;
  /** @throws CommandFailure when a file is not what it has to be */
  read(): TreeEntries;
}

/** Opens an export. @throws CommandFailure when it does not exist, or is not an export */
export async function openFile(file: ExportFile, selection: TreeSelection): Promise<TreeSource> {
  const { name, path } = file;
  let isDirectory: boolean;
  try {
    isDirectory = statSync(path).isDirectory();
  } catch (error) {
    throw fileFailure(`cannot read ${name}`, error);
  }
  if (isDirectory) {
    const header = readDirectoryHeader(path);
    const read = (): TreeEntries => selectFrom(readDirectory(path), selection);
    return { shown: name, root: header?.root ?? null, isDirectory, read };
  }
  const { root } = await readExportHeader(file);
  return { shown: name, root, isDirectory, read: () => selectFrom(readExport(file), selection) };
}

/**
 * A tree as people name it: `file:` and the path of a file or directory, everything else is a place in a service.
 * Where paths of znodes have to begin with "/", what does not begin like that is a file, too.
 */
export async function openTree(context: Context, text: string, selection: TreeSelection): Promise<TreeSource> {
  const path = fileNamed(text, context.isShell);
  if (path !== null) return openFile({ name: path, path }, selection);
  const { client, path: root, shown } = await context.locate(text);
  // What the service has acknowledged by now is what is read.
  await client.sync('/', context.call);
  return {
    shown,
    root,
    isDirectory: false,
    read: () => selectFromService(client, root, selection, context.call, 'fails'),
  };
}

function fileNamed(text: string, isShell: boolean): string | null {
  if (text.startsWith('file:')) return text.slice('file:'.length);
  const isPlace = isShell || text.startsWith('/') || text.startsWith('zk://') || /^[A-Za-z0-9_.-]+:\//.test(text);
  return isPlace ? null : text;
}
