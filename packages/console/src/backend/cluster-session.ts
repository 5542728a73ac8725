import { type Client, connect } from '@meerkat/client';
import type { LoginInfo } from '../api/messages.ts';
import { ChildLists } from './child-lists.ts';
import { adminIdentityOf, type Login } from './login.ts';
import type { ClusterOptions } from './options.ts';
import { Refusal } from './refusal.ts';
import type { AdminIdentity } from './session-end.ts';
import { TreeIndex } from './tree-index.ts';
import { UndoSlot } from './undo-slot.ts';
import { type Identities, readIdentities } from './znode-reader.ts';

/** The state of one browser for one cluster: a ZooKeeper session and its caches. */
export class ClusterSession {
  readonly cluster: ClusterOptions;
  readonly login: LoginInfo;
  /** Its identity for admin ports; null: they do not support such a login. */
  readonly adminIdentity: AdminIdentity | null;
  readonly client: Client;
  readonly identities: Identities;
  readonly childLists: ChildLists;
  readonly undo: UndoSlot = new UndoSlot();
  readonly #indexMax: number;
  readonly #ending = new AbortController();
  #index: TreeIndex | null = null;
  #indexUsedMs = 0;

  /** @throws ConnectError, AuthFailedError */
  static async open(cluster: ClusterOptions, login: Login, indexMax: number): Promise<ClusterSession> {
    const client = await connect({ connectTimeoutMs: CONNECT_MS, ...login.options });
    const identities = await meetServer(client);
    return new ClusterSession(cluster, login, client, identities, indexMax);
  }

  private constructor(cluster: ClusterOptions, login: Login, client: Client, identities: Identities, indexMax: number) {
    this.cluster = cluster;
    this.login = login.info;
    this.adminIdentity = adminIdentityOf(login);
    this.client = client;
    this.identities = identities;
    this.childLists = new ChildLists(client);
    this.#indexMax = indexMax;
  }

  /** Walks the tree on first use. */
  get index(): TreeIndex {
    this.#indexUsedMs = Date.now();
    this.#index ??= new TreeIndex(this.client, this.#indexMax);
    return this.#index;
  }

  /** Aborted at logout: it ends everything that follows the tree for a page. */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  /** Frees the memory of an index that no page uses. */
  forgetUnused(nowMs: number): void {
    if (this.#index === null || nowMs - this.#indexUsedMs < UNUSED_MS) return;
    this.#index.stop();
    this.#index = null;
    this.childLists.clear();
  }

  /** Options of requests: a request that waits longer for a connection is answered with an error. */
  get call(): { readonly timeoutMs: number } {
    if (this.client.state === 'lost' || this.client.state === 'suspended') {
      throw new Refusal(
        503,
        'away',
        `no server of ${this.cluster.name} answers (${this.cluster.servers.map(({ name }) => name).join(', ')}); the console keeps trying`,
      );
    }
    return { timeoutMs: REQUEST_MS };
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#index?.stop();
    this.childLists.clear();
    await this.client.close({ timeoutMs: CLOSE_MS }).catch(() => {});
  }
}

/**
 * Probes features that older servers lack: they close the connection at each such request, which would later break
 * other requests. Persistent watches need 3.6, whoAmI 3.7.
 */
async function meetServer(client: Client): Promise<Identities> {
  const call = { timeoutMs: CONNECT_MS };
  const identities = await readIdentities(client, call);
  const signal = AbortSignal.timeout(CONNECT_MS);
  try {
    await client.whenConnected({ signal });
    await using watch = client.watch('/', { signal });
    await watch.ready;
    await client.whenConnected({ signal });
  } catch {
    // The service is gone meanwhile, which each view reports.
  }
  return identities;
}

const CONNECT_MS = 5000;
const REQUEST_MS = 20_000;
const CLOSE_MS = 2000;
/** Much longer than the polling interval of a page that shows the index. */
const UNUSED_MS = 300_000;
