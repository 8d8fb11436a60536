const KEY = 'berth.key';

/**
 * The admin key of this tab, where one is needed. It lives in sessionStorage and goes with the tab; where the browser
 * forbids that, it lives in memory.
 */
class Session {
  key = $state<string | undefined>(stored());
  /** Why a key is asked for, in the server's words; undefined while none is. */
  refusal = $state<string | undefined>();

  signIn(key: string): void {
    this.key = key.trim();
    this.refusal = undefined;
    try {
      sessionStorage.setItem(KEY, this.key);
    } catch {
      // Storage is blocked: the key is asked for again after a reload.
    }
  }

  signOut(): void {
    this.key = undefined;
    try {
      sessionStorage.removeItem(KEY);
    } catch {
      // Nothing was stored either.
    }
  }

  keepOut(why: string): void {
    this.refusal = why;
  }
}

function stored(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export const session = new Session();
