import { writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';

/** A package as published by npm: the document that is returned on installation, and the file. */
interface Publication {
  readonly name: string;
  readonly versions: Readonly<Record<string, { readonly dist: { readonly tarball: string } }>>;
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

/** An npm registry on the loopback interface. */
export class LocalRegistry {
  readonly #directory: string;
  readonly #server: Server;
  readonly #documents = new Map<string, Publication>();
  readonly #files = new Map<string, Buffer>();

  /** @param directory for the published files, named as by `npm pack` */
  static async start(directory: string): Promise<LocalRegistry> {
    const registry = new LocalRegistry(directory);
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve));
    return registry;
  }

  private constructor(directory: string) {
    this.#directory = directory;
    this.#server = createServer(async (request, response) => {
      const path = decodeURIComponent(request.url ?? '').slice(1);
      // npm's cache is shared with other runs, whose files differ.
      response.setHeader('cache-control', 'no-store');
      if (request.method === 'PUT') {
        this.#publish(JSON.parse((await buffer(request)).toString()) as Publication);
        response.writeHead(201).end('{}');
      } else {
        this.#answer(path, response);
      }
    });
  }

  /** A flag that makes npm install packages of this scope from here. */
  flagFor(scope: string): string {
    return `--${scope}:registry=${this.#address}`;
  }

  /** Flags that make npm publish packages of this scope, and all others, here, so that nothing leaves the machine. */
  flagsToPublish(scope: string): string[] {
    // npm refuses to publish without a token.
    const login = `--${this.#address.replace('http:', '')}:_authToken=test`;
    return [this.flagFor(scope), `--registry=${this.#address}`, login];
  }

  get #address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #publish(publication: Publication): void {
    this.#documents.set(publication.name, publication);
    for (const { dist } of Object.values(publication.versions)) {
      const [attachment] = Object.values(publication._attachments);
      const bytes = Buffer.from(attachment!.data, 'base64');
      this.#files.set(decodeURIComponent(new URL(dist.tarball).pathname).slice(1), bytes);
      const scope = publication.name.slice(1).split('/')[0];
      writeFileSync(join(this.#directory, `${scope}-${basename(dist.tarball)}`), bytes);
    }
  }

  #answer(path: string, response: ServerResponse): void {
    const file = this.#files.get(path);
    if (file !== undefined) {
      response.end(file);
      return;
    }
    const document = this.#documents.get(path);
    if (document === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    const { _attachments, ...rest } = document;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(rest));
  }
}
