import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';

export interface Asset {
  readonly bytes: Buffer;
  readonly type: string;
}

/** Files of the page, cached in memory: they are few, and of this process's version. */
export class Assets {
  readonly #files: Map<string, Promise<Asset | null>> = new Map();
  #page: Promise<string> | null = null;

  /** The page itself. @throws Error when it is not built */
  page(): Promise<string> {
    this.#page ??= readAsset('index.html').then(String, (error) => {
      throw new Error(`the page of the console is not built (${(error as Error).message}): run "npm run build"`);
    });
    return this.#page;
  }

  /** @returns null when there is no such file */
  file(name: string): Promise<Asset | null> {
    if (!/^[\w-]+(?:\.[\w-]+)*$/.test(name)) return Promise.resolve(null);
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const type = TYPES[extname(name)];
    if (type === undefined) return Promise.resolve(null);
    const read = readAsset(`assets/${name}`).then(
      (bytes) => ({ bytes, type }),
      () => null,
    );
    void read.then((asset) => asset !== null && this.#files.set(name, read));
    return read;
  }
}

/** In the single executable the files are embedded; otherwise they are in the build output. */
async function readAsset(name: string): Promise<Buffer> {
  const sea = process.getBuiltinModule?.('node:sea') as
    | { isSea(): boolean; getAsset(key: string): ArrayBuffer }
    | undefined;
  if (sea?.isSea() === true) return Buffer.from(sea.getAsset(`console/${name}`));
  const directory = new URL(import.meta.url.endsWith('.ts') ? '../../dist/web/' : '../web/', import.meta.url);
  return await readFile(new URL(name, directory));
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
