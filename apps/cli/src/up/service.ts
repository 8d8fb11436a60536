/** What a process says of itself when it serves. */
export type Details = Readonly<Record<string, string | number | boolean>>;

/** One run of a service, from its launch to its end. */
export interface Launched {
  /** Rejected with a sentence for a person when it cannot start. */
  readonly ready: Promise<Details>;
  /** Fulfilled when nothing of it is left, with what is known of why. Never rejected. */
  readonly ended: Promise<string>;
  readonly pid?: number;
  /** Asks it to end in order; by force after the time. */
  stop(withinMs: number): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

export interface Service {
  /** `api`: in file names. */
  readonly name: string;
  /** `worker agent`: in lines for people. */
  readonly title: string;
  /** How long an ordered stop may take. */
  readonly stopWithinMs: number;
  launch(): Launched;
}
