/** The working of a decision or a refusal: the rest of what was considered is counted. */
export const MOST_WORKING_BYTES = 64 * 1024;
/** The tail of an engine's log in an event. */
export const MOST_TAIL_BYTES = 4 * 1024;
/** Foreign processes that one event names. */
export const MOST_FOREIGN_PROCESSES = 8;
