import type { Failure, Hello } from '../api/messages.ts';

/** The console, or the service behind it, has not performed a request. */
export class ApiError extends Error {
  readonly failure: Failure;
  readonly status: number;

  constructor(status: number, failure: Failure) {
    super(failure.message);
    this.failure = failure;
    this.status = status;
  }
}

let csrf = '';

/** Sends a request, and parses the JSON response. URLs are relative, to support any path prefix. @throws ApiError */
export async function ask<T>(url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit =
    body === undefined
      ? {}
      : {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-meerkat-csrf': csrf },
          body: JSON.stringify(body),
        };
  let response: Response;
  try {
    response = await fetch(`./api/${url}`, { ...init, ...(signal === undefined ? {} : { signal }) });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiError(0, { code: 'offline', message: (error as Error).message, path: null });
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer as T;
  const failure = (answer as Failure | null) ?? { code: 'failed', message: response.statusText, path: null };
  throw new ApiError(response.status, failure);
}

export async function hello(url = 'hello', body?: unknown): Promise<Hello> {
  const answer = await ask<Hello>(url, body);
  csrf = answer.csrf;
  return answer;
}

/** The URL of a cluster's resource. */
export function clusterUrl(
  cluster: string,
  what: string,
  query: Readonly<Record<string, string | number>> = {},
): string {
  const text = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, `${value}`])).toString();
  return `c/${encodeURIComponent(cluster)}/${what}${text === '' ? '' : `?${text}`}`;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof ApiError) return error.failure;
  return { code: 'failed', message: error instanceof Error ? error.message : String(error), path: null };
}
