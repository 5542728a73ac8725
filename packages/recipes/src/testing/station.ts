import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import { makeClientClock, type VirtualEnsemble, VirtualTransport, type VirtualWorld } from '@meerkat/simulator';

/** A program on a host of a virtual world, which can be paused like a process by SIGSTOP. */
export interface Station {
  readonly host: string;
  readonly client: Client;
  /** Pauses it: no timer fires, nothing that arrives is read, until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves when this time has passed and the program runs. */
  sleep(ms: number): Promise<void>;
}

/** Connects a program that can be paused. Only inside `world.run`. */
export async function openStation(
  world: VirtualWorld,
  ensemble: VirtualEnsemble,
  host: string,
  options: Partial<ConnectOptions> = {},
): Promise<Station> {
  const clock = makeClientClock(world.timeline, world.clockOf(host));
  let isPaused = false;
  let waiting: (() => void)[] = [];
  // Timers that are due during the pause fire after it.
  const whenRunning = (callback: () => void): void => {
    if (isPaused) waiting.push(callback);
    else callback();
  };
  const pausable = {
    monotonicMs: () => clock.monotonicMs(),
    schedule: (delayMs: number, callback: () => void) => {
      let isCancelled = false;
      const cancel = clock.schedule(delayMs, () => whenRunning(() => !isCancelled && callback()));
      return () => {
        isCancelled = true;
        cancel();
      };
    },
    defer: (callback: () => void) => clock.defer(() => whenRunning(callback)),
  };
  const client = await connect({
    servers: ensemble.connectString,
    sessionTimeoutMs: 4000,
    connectTimeoutMs: 300_000,
    ...options,
    transport: new VirtualTransport(world.network, world.timeline, host),
    clock: pausable,
    random: world.random.fork(`client ${host}`),
  });
  client.onState(({ state, reason }) => world.record(host, `${state}: ${reason}`));
  return {
    host,
    client,
    pause() {
      world.record(host, 'is paused');
      isPaused = true;
      world.network.freezeHost(host);
    },
    resume() {
      world.record(host, 'continues');
      isPaused = false;
      const due = waiting;
      waiting = [];
      for (const callback of due) callback();
      world.network.thawHost(host);
      world.timeline.touch();
    },
    sleep: (ms) =>
      new Promise((resolve) => {
        pausable.schedule(ms, resolve);
      }),
  };
}
