/** How many that were asked of this api are kept, so that their ends can still be looked at. */
export const MOST_KEPT = 8;

/** The last things that were asked, by their ids, oldest first. */
export class LastAsked<T> extends Map<string, T> {
  override set(id: string, item: T): this {
    super.set(id, item);
    for (const old of this.keys()) if (this.size > MOST_KEPT) this.delete(old);
    return this;
  }
}
