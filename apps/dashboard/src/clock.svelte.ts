/** The time that relative times are told from, once a second while somebody looks. */
class Clock {
  nowMs = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.nowMs = Date.now();
    }, 1000);
    document.addEventListener('visibilitychange', () => (this.nowMs = Date.now()));
  }
}

export const clock = new Clock();
