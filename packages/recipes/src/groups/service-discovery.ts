import { type Acl, type CallOptions, type Client, type Data, joinPath, NoNodeError, OPEN } from '@meerkat/client';
import { checkedName } from '../kernel/child-name.ts';
import { makeUuid } from '../kernel/layout.ts';
import type { ZnodeOptions } from '../kernel/options.ts';
import { isRefusal } from './draft.ts';
import { LastingZnode } from './lasting-znode.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';
import { Roster, type RosterEntries } from './roster.ts';
import { formatInstance, parseInstance, type ServiceInstance } from './service-instance.ts';
import { DownInstances, type DownPolicy, roundRobin, type ServiceStrategy } from './service-strategies.ts';

export type ServiceDiscoveryOptions = ZnodeOptions;

/** Properties of an instance before registration; everything but the name is optional. */
export type ServiceDescription<T = unknown> = Pick<ServiceInstance<T>, 'name'> & Partial<ServiceInstance<T>>;

export interface ProviderOptions<T> {
  /** Default: round robin. */
  readonly strategy?: ServiceStrategy<T> | undefined;
  /** Only instances accepted by all of these are chosen. */
  readonly filters?: readonly ((instance: ServiceInstance<T>) => boolean)[] | undefined;
  /** When instances with errors are taken out of the choice. */
  readonly down?: DownPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Service discovery: instances register, and clients follow them and choose among them. The znodes are those of
 * Curator's discovery, `<base>/<service>/<id>`, so that both find each other's instances.
 *
 * @example
 * const discovery = new ServiceDiscovery(client, '/services');
 * await using registration = discovery.register({ name: 'search', id: 'a1', address: '10.0.0.1', port: 8080 });
 * await registration.whenRegistered();
 *
 * await using provider = discovery.provider('search', { strategy: sticky() });
 * const instance = await provider.choose();
 */
export class ServiceDiscovery {
  readonly path: string;
  readonly #client: Client;
  readonly #acl: readonly Acl[];

  constructor(client: Client, path: string, options: ServiceDiscoveryOptions = {}) {
    this.path = path;
    this.#client = client;
    this.#acl = options.acl ?? OPEN;
  }

  /**
   * Registers an instance. If its type is DYNAMIC (the default), it is registered as long as this process's session
   * lives, and again in each new session; otherwise until the registration is closed.
   *
   * @throws RangeError for a name or an id that is invalid as a znode name
   */
  register<T>(description: ServiceDescription<T>): Registration<T> {
    const instance: ServiceInstance<T> = {
      id: makeUuid(this.#client.surroundings.random),
      address: null,
      port: null,
      sslPort: null,
      payload: null,
      payloadClass: null,
      registrationTimeMs: 0,
      serviceType: 'DYNAMIC',
      uriSpec: null,
      isEnabled: true,
      ...description,
    };
    const path = joinPath(this.#pathOf(instance.name), checkedName(instance.id, 'the id of an instance'));
    const isLasting = instance.serviceType === 'STATIC' || instance.serviceType === 'PERMANENT';
    const place = isLasting
      ? new LastingZnode(this.#client, path, this.#acl, formatInstance(instance))
      : new PersistentEphemeral(this.#client, path, {
          data: formatInstance(instance),
          acl: this.#acl,
          owner: instance.id,
        });
    return new Registration(instance, path, place);
  }

  /** The names of all services that have, or had, instances, as the connected server knows them. */
  async names(options: CallOptions = {}): Promise<readonly string[]> {
    const { children } = await this.#client.children(this.path, options).catch(asEmpty);
    return children.toSorted();
  }

  /** The instances of a service, as the connected server knows them now. */
  async instances<T>(name: string, options: CallOptions = {}): Promise<readonly ServiceInstance<T>[]> {
    await using observation = this.observe<T>(name);
    return await observation.ready(options);
  }

  /** The instances of a service, as they are now and then after each change. */
  observe<T>(name: string, options: { readonly signal?: AbortSignal | undefined } = {}): ServiceObservation<T> {
    return new ServiceObservation(this.#client, this.#pathOf(name), options.signal);
  }

  /** Follows a service and chooses among its instances. */
  provider<T>(name: string, options: ProviderOptions<T> = {}): ServiceProvider<T> {
    const down = new DownInstances(this.#client.surroundings.clock, options.down);
    return new ServiceProvider(this.#client, this.observe(name, options), down, options);
  }

  #pathOf(name: string): string {
    return joinPath(this.path, checkedName(name, 'the name of a service'));
  }
}

/** A registered instance. */
export class Registration<T = unknown> implements AsyncDisposable {
  readonly path: string;
  readonly #place: PersistentEphemeral | LastingZnode;
  readonly #first: ServiceInstance<T>;
  /** By their data: instances that the znode may still hold or is to hold, oldest first. */
  readonly #instances: Map<Data, ServiceInstance<T>> = new Map();

  /** Created by `ServiceDiscovery.register`. */
  constructor(instance: ServiceInstance<T>, path: string, place: PersistentEphemeral | LastingZnode) {
    this.#first = instance;
    this.#instances.set(place.data, instance);
    this.path = path;
    this.#place = place;
  }

  /** As it is, or will be, registered. Excludes updates that the service has refused. */
  get instance(): ServiceInstance<T> {
    return this.#instances.get(this.#place.data) ?? this.#first;
  }

  /** Whether others find it, as far as can be known. */
  get isRegistered(): boolean {
    return this.#place.isPresent;
  }

  /**
   * Resolves when others can find it.
   *
   * @throws what has ended it, such as a NoAuthError; TimeoutError, AbortedError: it keeps trying
   */
  async whenRegistered(options: CallOptions = {}): Promise<void> {
    await this.#place.whenPresent(options);
  }

  /** Changes the instance. */
  async update(
    changes: Partial<Omit<ServiceInstance<T>, 'name' | 'id' | 'serviceType'>>,
    options: CallOptions = {},
  ): Promise<void> {
    const instance = { ...this.instance, ...changes };
    const data = formatInstance(instance);
    // Re-inserted, so that the latest of equal ones counts.
    this.#instances.delete(data);
    this.#instances.set(data, instance);
    try {
      await this.#place.set(data, options);
    } catch (error) {
      // A refused update does not come back; a cancelled one may still be written.
      if (isRefusal(error) && this.#place.data !== data) this.#instances.delete(data);
      throw error;
    }
    // The znode holds this or a later instance, which is not overwritten.
    for (const older of this.#instances.keys()) {
      if (older === data) return;
      this.#instances.delete(older);
    }
  }

  /**
   * Unregisters. Resolves when the znode is gone; without a connection at once, and it is deleted with the next one.
   *
   * @throws for STATIC and PERMANENT instances, NoAuthError and what else the service refuses the deletion with
   */
  close(): Promise<void> {
    return this.#place.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The instances of one service, kept up to date until a loop over it ends or it is closed. */
export class ServiceObservation<T = unknown> implements AsyncIterable<readonly ServiceInstance<T>[]>, AsyncDisposable {
  readonly #roster: Roster;
  #parsed: { readonly of: RosterEntries; readonly instances: readonly ServiceInstance<T>[] } | null = null;

  /** Created by `ServiceDiscovery.observe`. */
  constructor(client: Client, path: string, signal: AbortSignal | undefined) {
    this.#roster = new Roster(client, path, { signal });
  }

  /** As last known, ordered by id; null before the first time. */
  get current(): readonly ServiceInstance<T>[] | null {
    const entries = this.#roster.entries.current;
    return entries === null ? null : this.#parse(entries);
  }

  /**
   * The error that ended it, after which `current` is not kept up to date; null while it runs, and once it is closed.
   */
  get failure(): Error | null {
    return this.#roster.entries.failure;
  }

  /** Resolves with the instances once they are known. */
  async ready(options: CallOptions = {}): Promise<readonly ServiceInstance<T>[]> {
    return this.#parse(await this.#roster.ready(options));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly ServiceInstance<T>[], undefined> {
    for await (const entries of this.#roster.entries) yield this.#parse(entries);
  }

  close(): Promise<void> {
    this.#roster.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #parse(entries: RosterEntries): readonly ServiceInstance<T>[] {
    if (this.#parsed?.of !== entries) {
      const instances = [...entries.values()].flatMap(({ data }) => parseInstance<T>(data) ?? []);
      this.#parsed = { of: entries, instances: instances.sort((a, b) => (a.id < b.id ? -1 : 1)) };
    }
    return this.#parsed.instances;
  }
}

/** Chooses among the instances of a service. */
export class ServiceProvider<T = unknown> implements AsyncDisposable {
  readonly #client: Client;
  readonly #observation: ServiceObservation<T>;
  readonly #strategy: ServiceStrategy<T>;
  readonly #filters: readonly ((instance: ServiceInstance<T>) => boolean)[];
  readonly #down: DownInstances;

  /** Created by `ServiceDiscovery.provider`. */
  constructor(
    client: Client,
    observation: ServiceObservation<T>,
    down: DownInstances,
    { strategy = roundRobin(), filters = [] }: ProviderOptions<T>,
  ) {
    this.#client = client;
    this.#observation = observation;
    this.#strategy = strategy;
    this.#filters = filters;
    this.#down = down;
  }

  /**
   * The instances that may be chosen now, ordered by id: enabled, not down, accepted by every filter.
   *
   * @throws what has ended the following of the service, such as a NoAuthError; TimeoutError, AbortedError
   */
  async candidates(options: CallOptions = {}): Promise<readonly ServiceInstance<T>[]> {
    const { failure } = this.#observation;
    if (failure !== null) throw failure;
    const instances = this.#observation.current ?? (await this.#observation.ready(options));
    return instances.filter(
      (instance) =>
        instance.isEnabled && !this.#down.isDown(instance.id) && this.#filters.every((accepts) => accepts(instance)),
    );
  }

  /**
   * The instance for the next call; null when there is none. Choose again for each call.
   *
   * @throws as `candidates` does
   */
  async choose(options: CallOptions = {}): Promise<ServiceInstance<T> | null> {
    const candidates = await this.candidates(options);
    return candidates.length === 0 ? null : this.#strategy(candidates, this.#client.surroundings.random);
  }

  /** Records a failed call to the instance: after too many of these it is down for a while. */
  noteError({ id }: Pick<ServiceInstance, 'id'>): void {
    this.#down.note(id);
  }

  close(): Promise<void> {
    return this.#observation.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function asEmpty(error: unknown): { readonly children: readonly string[] } {
  if (error instanceof NoNodeError) return { children: [] };
  throw error;
}
