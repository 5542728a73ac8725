/**
 * A validator: the part of the interface "Standard Schema", version 1 (https://standardschema.dev), that is needed to
 * validate a value. Declared here, because it is a convention and not a package.
 */
export interface StandardSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    /** The library that created it. */
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A validation error. */
export interface SchemaIssue {
  readonly message: string;
  /** Keys from the outermost to the innermost. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A value does not match its schema. The message lists every issue with its path. */
export class SchemaError extends Error {
  readonly issues: readonly SchemaIssue[];

  constructor(issues: readonly SchemaIssue[]) {
    super(issues.map(describe).join('; '));
    this.issues = issues;
  }
}

Object.defineProperty(SchemaError.prototype, 'name', { value: 'SchemaError', configurable: true, writable: true });

/** `servers.0.port: expected a number` */
function describe({ message, path = [] }: SchemaIssue): string {
  const keys = path.map((segment) => String(typeof segment === 'object' ? segment.key : segment));
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`;
}
