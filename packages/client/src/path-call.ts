import type { Request } from '@meerkat/protocol';
import { call } from './calls.ts';
import type { ClientRequester } from './client-requester.ts';
import { checkOptions, type MethodWithOptions } from './known-options.ts';
import type { About, CallOptions } from './requester.ts';

/**
 * A client method that is one request for one path: checks options and path, adds the chroot, sends it.
 *
 * @param isSequential the path may end with a slash: `absoluteSequential`
 */
export function callPath<T>(
  requester: ClientRequester,
  operation: MethodWithOptions,
  path: string,
  options: CallOptions | undefined,
  makeRequest: (absolute: string, about: About) => Request,
  isSequential = false,
): Promise<T> {
  const about = { operation, path };
  let request: Request;
  try {
    checkOptions(operation, options, about);
    const absolute = isSequential ? requester.absoluteSequential(path, operation) : requester.absolute(path, operation);
    request = makeRequest(absolute, about);
  } catch (error) {
    return Promise.reject(error);
  }
  return call(requester.session, { request, about, listener: null }, options);
}
