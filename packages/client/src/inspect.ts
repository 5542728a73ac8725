/** Node's `util.inspect`, as passed to custom inspection functions. */
export type Inspect = (value: unknown, options: object) => string;

/** Defines the output of `console.log` and `util.inspect` for a class. */
export function showAs<T>(
  type: { readonly prototype: T },
  show: (value: T, inspect: Inspect, options: object) => string,
): void {
  Object.defineProperty(type.prototype, Symbol.for('nodejs.util.inspect.custom'), {
    value(this: T, _depth: number, options: object, inspect: Inspect): string {
      return show(this, inspect, options);
    },
  });
}
