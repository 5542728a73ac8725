/** Node's `util.inspect`, as it hands itself over with its options. */
export type Inspect = (value: unknown, options: object) => string;

/** Says what `console.log` and `util.inspect` print for a class of ours. */
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
