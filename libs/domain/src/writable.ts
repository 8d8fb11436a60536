/** A value while it is being put together: what is not known is left out, without a copy for each field that is. */
export type Writable<T> = { -readonly [K in keyof T]: T[K] };
