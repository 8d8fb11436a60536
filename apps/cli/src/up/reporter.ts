/** Lines for the person at the terminal: one per step, with its time. */
export interface Reporter {
  line(text: string): void;
  step(title: string): { done(state: string, more?: string): void };
}

export function createReporter(write: (line: string) => void): Reporter {
  return {
    line: (text) => write(`  ${text}`),
    step: (title) => {
      const began = performance.now();
      return {
        done: (state, more = '') => {
          const seconds = `${((performance.now() - began) / 1000).toFixed(2)} s`;
          write(`  ${title.padEnd(13)} ${state.padEnd(8)} ${seconds.padStart(8)}   ${more}`.trimEnd());
        },
      };
    },
  };
}
