import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { RequestTrace } from './request-trace.ts';

/*
 * Diagnostics channels (node:diagnostics_channel), for any code of the process, without access to the client:
 *
 *     tracing:meerkat.client.request:{start,end,asyncStart,asyncEnd,error}    RequestTrace
 *     meerkat.client.state                                                    StateChange
 *     meerkat.client.stall                                                    Stall
 *
 * Without subscribers a channel costs one check of `hasSubscribers`.
 */

/**
 * Every request to the service.
 *
 * @example
 * tracingChannel('meerkat.client.request').subscribe({
 *   asyncEnd: ({ operation, path, error }) => console.log(operation, path, error === undefined ? 'done' : 'failed'),
 *   ...
 * });
 */
export const requestChannel: TracingChannel<unknown, RequestTrace> = tracingChannel<unknown, RequestTrace>(
  'meerkat.client.request',
);

/** Every change of state of every client: a StateChange. */
export const stateChannel: Channel = channel('meerkat.client.state');

/** Event loops that were blocked for too long: a Stall. */
export const stallChannel: Channel = channel('meerkat.client.stall');
