import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { RequestTrace } from './request-trace.ts';

/*
 * What any code of the process can subscribe to without access to the client (node:diagnostics_channel):
 *
 *     tracing:meerkat.client.request:{start,end,asyncStart,asyncEnd,error}    RequestTrace
 *     meerkat.client.state                                                    StateChange
 *     meerkat.client.stall                                                    Stall
 *
 * Without subscribers a channel costs one look at `hasSubscribers`.
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

/** Event loops that stood still for too long: a Stall. */
export const stallChannel: Channel = channel('meerkat.client.stall');
