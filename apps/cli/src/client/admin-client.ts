/** The api answered, and its answer was a refusal. */
export class AdminRefusal extends Error {
  readonly status: number;
  readonly code: string | undefined;
  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const ANSWER_WITHIN_MS = 15_000;
const PAGE = 200;

/** Asks the admin API of a running Berth. Every failure is a sentence with the next step. */
export class AdminClient {
  readonly address: string;

  constructor(address: string) {
    this.address = address.replace(/\/+$/, '');
  }

  get<T>(path: string): Promise<T> {
    return this.send('GET', path);
  }

  /** With the admin key in BERTH_KEY, which only other machines need; on a command line everybody could read it. */
  async send<T>(method: string, path: string, body?: object): Promise<T> {
    const key = process.env['BERTH_KEY'];
    let answer: Response;
    try {
      answer = await fetch(`${this.address}${path}`, {
        method,
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        headers: {
          ...(key === undefined || key === '' ? {} : { authorization: `Bearer ${key}` }),
          ...(body ? { 'content-type': 'application/json' } : {}),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    } catch (error) {
      throw new Error(this.#unreachable(error), { cause: error });
    }
    const text = await answer.text();
    let read: unknown;
    try {
      read = JSON.parse(text);
    } catch {
      throw new Error(
        `What answers at ${this.address}${path} is not Berth (status ${answer.status}, no JSON). Name Berth's address with --url.`,
      );
    }
    if (!answer.ok) throw refusal(read, answer.status, path);
    return read as T;
  }

  /** Newest first, as the api gives them, page by page up to a number of rows. */
  async list<T>(path: string, atMost = 1_000): Promise<readonly T[]> {
    const rows: T[] = [];
    let after: string | undefined;
    do {
      const query = new URLSearchParams({ limit: String(Math.min(PAGE, atMost - rows.length)) });
      if (after !== undefined) query.set('after', after);
      const page = await this.get<{ items: readonly T[]; next?: string | null }>(
        `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`,
      );
      rows.push(...page.items);
      after = page.next ?? undefined;
    } while (after !== undefined && rows.length < atMost);
    return rows;
  }

  #unreachable(error: unknown): string {
    const cause = (error as { cause?: { code?: string } }).cause?.code;
    if ((error as Error).name === 'TimeoutError') {
      return `Berth at ${this.address} did not answer within ${ANSWER_WITHIN_MS / 1000} s. Its logs are in the logs folder of its home.`;
    }
    return `Nothing answers at ${this.address}${cause === undefined ? '' : ` (${cause})`}. Start Berth with \`berth up\`, or name its address with --url.`;
  }
}

/** A problem document of the admin API, or an error object of the data plane. */
function refusal(body: unknown, status: number, path: string): AdminRefusal {
  const fields = body as {
    detail?: string;
    title?: string;
    message?: string;
    code?: string;
    error?: { message?: string; code?: string };
  } | null;
  const message = fields?.detail ?? fields?.error?.message ?? fields?.message ?? fields?.title;
  return new AdminRefusal(
    message ??
      `The api refused ${path} with status ${status}. Its log is in the logs folder of Berth's home.`,
    status,
    fields?.code ?? fields?.error?.code,
  );
}
