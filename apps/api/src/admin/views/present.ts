type Defined<T> = {
  [K in keyof T as null extends T[K] ? never : undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as null extends T[K] ? K : undefined extends T[K] ? K : never]?: Exclude<
    T[K],
    null | undefined
  >;
};

/** Leaves out what is unknown: the answer has no nulls. */
export function present<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, part]) => part !== null && part !== undefined),
  ) as Defined<T>;
}

/** Figures by device, as the projection writes them. */
export type DeviceFigures = readonly { readonly deviceId: string; readonly bytes: number }[];
