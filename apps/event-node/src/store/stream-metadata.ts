/** What a stream's metadata says to the node; everything else in it is the writers' own. */
export interface StreamMetadata {
  /** `$tb`: events below are hidden. */
  readonly truncateBefore: number;
  readonly maxCount: number;
  readonly maxAgeSeconds: number;
  /** Roles per right; undefined where the default holds. */
  readonly acl: StreamAcl;
  /** The whole document, or undefined when it was no JSON object. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
}

export interface StreamAcl {
  readonly read: readonly string[] | undefined;
  readonly write: readonly string[] | undefined;
  readonly delete: readonly string[] | undefined;
  readonly metaRead: readonly string[] | undefined;
  readonly metaWrite: readonly string[] | undefined;
}

const NO_ACL: StreamAcl = {
  read: undefined,
  write: undefined,
  delete: undefined,
  metaRead: undefined,
  metaWrite: undefined,
};

export const NO_METADATA: StreamMetadata = {
  truncateBefore: 0,
  maxCount: Infinity,
  maxAgeSeconds: Infinity,
  acl: NO_ACL,
  document: undefined,
};

/** `$tb` of a soft-deleted stream, 2^63-1; JSON readers that know only doubles see 2^63. */
const SOFT_DELETE = Number(9223372036854775807n);
export const SOFT_DELETE_METADATA = '{"$tb":9223372036854775807}';

export const isSoftDeleted = (metadata: StreamMetadata): boolean => metadata.truncateBefore >= SOFT_DELETE;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const integer = (value: unknown, least: number, otherwise: number): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= least ? value : otherwise;

const roles = (value: unknown): readonly string[] | undefined => {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.filter((role): role is string => typeof role === 'string');
  return undefined;
};

/** Values that are no integers are ignored, as the real server does. */
export function parseMetadata(text: string): StreamMetadata {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return NO_METADATA;
    throw error;
  }
  if (!isObject(document)) return NO_METADATA;
  const acl = isObject(document.$acl) ? document.$acl : {};
  return {
    truncateBefore: integer(document.$tb, 0, 0),
    maxCount: integer(document.$maxCount, 1, Infinity),
    maxAgeSeconds: integer(document.$maxAge, 1, Infinity),
    acl: {
      read: roles(acl.$r),
      write: roles(acl.$w),
      delete: roles(acl.$d),
      metaRead: roles(acl.$mr),
      metaWrite: roles(acl.$mw),
    },
    document,
  };
}

export const isMetadataStream = (stream: string): boolean => stream.startsWith('$$');
export const metadataStreamOf = (stream: string): string => `$$${stream}`;
export const baseStreamOf = (metadataStream: string): string => metadataStream.slice(2);
