import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';

/*
 * What anybody in the process can listen to without touching the client (node:diagnostics_channel):
 *
 *     tracing:meerkat.client.request:{start,end,asyncStart,asyncEnd,error}    RequestTrace
 *     meerkat.client.state                                                    StateChange
 *     meerkat.client.stall                                                    Stall
 *
 * Without subscribers a channel costs one look at `hasSubscribers`.
 */
export const requestChannel: TracingChannel = tracingChannel('meerkat.client.request');
export const stateChannel: Channel = channel('meerkat.client.state');
export const stallChannel: Channel = channel('meerkat.client.stall');
