import cliProgress from 'cli-progress';
import { formatSeconds } from '#domain/units.js';
import type { LogPosition } from '#domain/events/index.js';
import type { ReplayLine, ReplayProgress, ReplayStep } from '#domain/wire/index.js';

export interface ProgressLine {
  step(name: ReplayStep, end: LogPosition): void;
  /** Events that were folded, and up to where. */
  fold(events: number, position: LogPosition): void;
  end(): void;
}

export interface ProgressOptions {
  readonly json: boolean;
  /** Where a person looks: a bar when it is a terminal, a line now and then when it is not. */
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** Where a program reads. */
  readonly say: (line: ReplayLine) => void;
  /** Milliseconds that only grow. */
  readonly now: () => number;
}

export function progressOf({ json, stderr, say, now }: ProgressOptions): ProgressLine {
  if (json) return progressObjects(say, now);
  return stderr.isTTY === true
    ? progressBar(stderr, now)
    : progressLines((line) => void stderr.write(`${line}\n`), now);
}

const SAY_EVERY_MS = 2000;
const OBJECT_EVERY_MS = 500;

/** How much of the log lies behind a position. Positions grow with the bytes before them on every server. */
function share(position: LogPosition, end: LogPosition): number {
  if (end.commit === 0n) return 1;
  return Math.min(1, Number((position.commit * 10_000n) / end.commit) / 10_000);
}

class Pace {
  events = 0;
  share = 0;
  readonly #now: () => number;
  readonly #began: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#began = now();
  }

  add(events: number, share_: number): void {
    this.events += events;
    this.share = share_;
  }

  get perSecond(): number {
    return Math.round(this.events / Math.max(0.001, this.seconds));
  }

  get seconds(): number {
    return (this.#now() - this.#began) / 1000;
  }

  /** By the share of the log's bytes that is behind. */
  get leftSeconds(): number | undefined {
    return this.share > 0 ? (this.seconds * (1 - this.share)) / this.share : undefined;
  }
}

const left = (pace: Pace): string =>
  pace.leftSeconds === undefined ? '' : `${formatSeconds(pace.leftSeconds)} left`;

/** A bar for a person at a terminal. */
function progressBar(stream: NodeJS.WritableStream, now: () => number): ProgressLine {
  const bar = new cliProgress.SingleBar({
    format: '{step} {bar} {percentage}%  {events} events  {rate}/s  {left}',
    hideCursor: true,
    clearOnComplete: true,
    stopOnComplete: false,
    barsize: 24,
    stream,
  });
  const pace = new Pace(now);
  let end: LogPosition | undefined;
  let step = '';
  const fields = () => ({
    step,
    events: pace.events.toLocaleString('en'),
    rate: pace.perSecond.toLocaleString('en'),
    left: step === 'fold' ? left(pace) : '',
  });
  bar.start(10_000, 0, fields());
  return {
    step: (name, through) => {
      step = name;
      end = through;
      bar.update(name === 'fold' ? Math.round(pace.share * 10_000) : 10_000, fields());
    },
    fold: (events, position) => {
      pace.add(events, end ? share(position, end) : 0);
      bar.update(Math.round(pace.share * 10_000), fields());
    },
    end: () => bar.stop(),
  };
}

/** Plain lines for a pipe, now and then. */
function progressLines(say: (line: string) => void, now: () => number): ProgressLine {
  return nowAndThen(now, SAY_EVERY_MS, say, (pace) =>
    say(
      `${(pace.share * 100).toFixed(1)} %, ${pace.events.toLocaleString('en')} events, ${pace.perSecond.toLocaleString('en')}/s, ${left(pace)}`,
    ),
  );
}

/** Objects for a program; one that shows them to a person wants them more often. */
function progressObjects(say: (line: ReplayLine) => void, now: () => number): ProgressLine {
  const state = (pace: Pace): ReplayProgress => ({
    events: pace.events,
    share: pace.share,
    perSecond: pace.perSecond,
    ...(pace.leftSeconds === undefined ? {} : { leftSeconds: Math.round(pace.leftSeconds * 10) / 10 }),
  });
  return nowAndThen(
    now,
    OBJECT_EVERY_MS,
    (step, pace) => say({ step, ...state(pace) }),
    (pace) => say({ progress: state(pace) }),
  );
}

function nowAndThen(
  now: () => number,
  everyMs: number,
  onStep: (step: ReplayStep, pace: Pace) => void,
  onPace: (pace: Pace) => void,
): ProgressLine {
  const pace = new Pace(now);
  let end: LogPosition | undefined;
  let saidAt = now();
  return {
    step: (name, through) => {
      end = through;
      onStep(name, pace);
    },
    fold: (events, position) => {
      pace.add(events, end ? share(position, end) : 0);
      if (now() - saidAt < everyMs) return;
      saidAt = now();
      onPace(pace);
    },
    end: () => undefined,
  };
}
